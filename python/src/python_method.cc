// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <variant>

#include "bind.h"
#include "layer.h"
#include "winnow/error.h"
#include "winnow/policy/registry.h"
#include "winnow/policy/score.h"

namespace winnow::python {

namespace {

using policy::AlwaysKept;
using policy::LayerView;
using policy::Option;
using policy::Scores;
using Object = std::shared_ptr<nb::object>;
/// (name, default, least, most, effect)
using Declared = std::tuple<std::string, std::variant<int, double>, double, double, std::string>;

/// Specs may live in any thread, and longer than Python; their objects are then left to the end of the process.
Object hold(nb::object object) {
  return {new nb::object(std::move(object)), [](nb::object* held) {
            if (!nb::is_alive()) return static_cast<void>(held->release());
            const nb::gil_scoped_acquire gil;
            delete held;
          }};
}

/// Name of a method in Python, and whether its scores may be negative.
struct Mine {
  std::string name;
  bool signed_scores;
};

/// Throws UsageError for NaN, and for negative scores of a method that declares none.
void check(const Mine& mine, int head, std::span<const float> scores) {
  const auto nan = std::ranges::count_if(scores, [](float x) { return x != x; });
  if (nan > 0)
    throw UsageError(fmt::format("{}: {} of the {} scores of KV head {} are NaN", mine.name, nan, scores.size(), head));
  const auto negative = mine.signed_scores ? 0 : std::ranges::count_if(scores, [](float x) { return x < 0; });
  if (negative > 0)
    throw UsageError(fmt::format("{}: {} of the {} scores of KV head {} are negative, but signed is False", mine.name,
                                 negative, scores.size(), head));
}

/// The result of score() as f32. Throws UsageError for other objects and other shapes.
Scores scores_of(const Mine& mine, const nb::object& result, const LayerView& view) {
  const auto numpy = nb::module_::import_("numpy");
  const nb::object array = numpy.attr("asarray")(result);
  const auto kind = nb::cast<std::string>(array.attr("dtype").attr("kind"));
  const auto expected = nb::make_tuple(view.shape.kv_heads, view.tokens());
  if (!array.attr("shape").equal(expected) || std::string("fiub").find(kind) == std::string::npos)
    throw UsageError(fmt::format(
        "{}: score() returned {} of shape {}: give numbers of shape {}, one for each KV head "
        "and token",
        mine.name, text_of(nb::str(nb::object(array.attr("dtype")))), shown(array.attr("shape")), shown(expected)));
  const auto floats = nb::cast<Rows>(numpy.attr("ascontiguousarray")(array, nb::arg("dtype") = numpy.attr("float32")));
  Scores out(view.shape.kv_heads, view.tokens());
  for (int head = 0; head < out.heads(); ++head) {
    const float* const row = floats.data() + static_cast<std::ptrdiff_t>(head) * out.size();
    std::copy_n(row, out.size(), out.head(head).begin());
    check(mine, head, out.head(head));
  }
  return out;
}

/// Ends a Layer when its score() has returned or raised.
struct Ending {
  Layer& layer;
  ~Ending() { layer.end(); }
};

Scores score(const Mine& mine, const Object& method, const LayerView& view, const Layer::Observers& observers) {
  const nb::gil_scoped_acquire gil;
  const nb::object layer = nb::cast(Layer(view, observers));
  const Ending ending{nb::cast<Layer&>(layer)};
  return scores_of(mine, method->attr("score")(layer), view);
}

int count_of(const std::string& name, const nb::object& method, const char* attribute) {
  const nb::object value = nb::getattr(method, attribute, nb::int_(0));
  int out = 0;
  if (nb::isinstance<nb::bool_>(value) || !nb::try_cast(value, out) || out < 0 || out > 65536)
    throw UsageError(fmt::format("{}: {} is {}: give a number from 0 to 65536", name, attribute, shown(value)));
  return out;
}

bool flag_of(const std::string& name, const nb::object& method, const char* attribute) {
  const nb::object value = nb::getattr(method, attribute, nb::bool_(true));
  if (!nb::isinstance<nb::bool_>(value))
    throw UsageError(fmt::format("{}: {} is {}: give True or False", name, attribute, shown(value)));
  return value.is(nb::bool_(true));
}

/// `observe`: None, a number of last queries, or 'all'.
std::optional<policy::ObserverPart<attention::ColumnStatistics>> observe_of(const std::string& name,
                                                                            const nb::object& method) {
  const nb::object value = nb::getattr(method, "observe", nb::none());
  if (value.is_none()) return {};
  if (value.equal(nb::str("all"))) return policy::observe_all();
  const int count = nb::isinstance<nb::str>(value) ? 0 : count_of(name, method, "observe");
  if (count == 0)
    throw UsageError(
        fmt::format("{}: observe is {}: give a number of last queries, 'all' or None", name, shown(value)));
  return policy::observe_last(count);
}

/// `observers`: names of observers with their options.
std::vector<policy::AddedObserver> add_observers(const std::string& name, const nb::object& object,
                                                 policy::Method& method) {
  const nb::object value = nb::getattr(object, "observers", nb::tuple());
  std::vector<std::string> specs;
  if (nb::isinstance<nb::str>(value) || !nb::try_cast(value, specs))
    throw UsageError(fmt::format("{}: observers are {}: give a list of their names", name, shown(value)));
  std::vector<policy::AddedObserver> out;
  for (const auto& spec : specs) {
    auto added = policy::add_named(method, spec);
    if (std::ranges::find(out, added.name, &policy::AddedObserver::name) != out.end())
      throw UsageError(fmt::format("{}: observers name {} twice", name, added.name));
    out.push_back(std::move(added));
  }
  return out;
}

policy::Method build(const std::string& name, const nb::object& object) {
  const AlwaysKept kept{count_of(name, object, "sinks"), count_of(name, object, "recent")};
  policy::Method method;
  Layer::Observers observers;
  if (const auto part = observe_of(name, object)) observers.attention = method.observers.add(*part, {.ranking = true});
  observers.named = add_observers(name, object, method);
  method.selection.always_kept = {fmt::format("the first {} and the last {} tokens", kept.sinks, kept.recent),
                                  [kept](const policy::LayerPrompt& prompt, int) {
                                    const int sinks = std::min(kept.sinks, prompt.tokens);
                                    return AlwaysKept{sinks, std::min(kept.recent, prompt.tokens - sinks)};
                                  }};
  method.selection.least = {method.selection.always_kept.text, [kept](const policy::LayerPrompt& prompt) {
                              return std::min(kept.total(), prompt.tokens);
                            }};
  const Mine mine{name, flag_of(name, object, "signed")};
  method.selection.signed_scores = mine.signed_scores;
  method.selection.score = {"score() in Python",
                            [mine, observers, held = hold(object)](const LayerView& view, const AlwaysKept&) {
                              return score(mine, held, view, observers);
                            }};
  method.schedule = policy::Schedule::once;
  return method;
}

Option option_of(const Declared& declared) {
  const auto& [name, value, least, most, effect] = declared;
  if (const auto* const integer = std::get_if<int>(&value))
    return {name, Option::Integer{*integer, static_cast<int>(least), static_cast<int>(most)}, effect};
  return {name, Option::Number{std::get<double>(value), least, most}, effect};
}

/// The options of a spec, as keyword arguments.
nb::dict arguments(const std::vector<Declared>& declared, const policy::Options& options) {
  nb::dict out;
  for (const auto& one : declared) {
    const auto& name = std::get<0>(one);
    if (std::holds_alternative<int>(std::get<1>(one))) {
      out[name.c_str()] = options.integer(name);
    } else {
      out[name.c_str()] = options.number(name);
    }
  }
  return out;
}

void add_method(const std::string& name, const std::string& summary, nb::object factory,
                const std::vector<Declared>& declared) {
  policy::Preset preset;
  preset.name = name;
  preset.summary = summary;
  preset.paper = "a method in Python";
  for (const auto& one : declared) preset.options.push_back(option_of(one));
  preset.build = [name, declared, held = hold(std::move(factory))](const policy::Options& options) {
    const nb::gil_scoped_acquire gil;
    return build(name, (*held)(**arguments(declared, options)));
  };
  policy::add_method(policy::with_positions(std::move(preset)));
}

void bind_layer(nb::module_& m) {
  nb::class_<Layer>(m, "Layer", "One layer of a prompt that has been read, as score() sees it.")
      .def_prop_ro(
          "index", [](const Layer& self) { return self.view().layer; }, "Index among the compressed layers.")
      .def_prop_ro(
          "layers", [](const Layer& self) { return self.view().layers; }, "Number of compressed layers.")
      .def_prop_ro("tokens", [](const Layer& self) { return self.view().tokens(); })
      .def_prop_ro("kv_heads", [](const Layer& self) { return self.view().shape.kv_heads; })
      .def_prop_ro("query_heads", [](const Layer& self) { return self.view().shape.query_heads; })
      .def_prop_ro("head_dim", [](const Layer& self) { return self.view().shape.head_dim; })
      .def_prop_ro(
          "question", [](const Layer& self) { return self.view().question; },
          "Number of last tokens that are the question; 0: not known.")
      .def_prop_ro("keys", &Layer::keys, nb::rv_policy::automatic,
                   "Read-only [KV heads, tokens, head_dim] of float32, rotated to their positions.")
      .def_prop_ro("values", &Layer::values, nb::rv_policy::automatic,
                   "Read-only [KV heads, tokens, head_dim] of float32.")
      .def_prop_ro(
          "attention", &Layer::attention, nb::rv_policy::automatic,
          "Read-only [query heads, tokens] of float32: the sum of the attention of the queries that the method's\n"
          "`observe` selects. Raises UsageError without `observe`.")
      .def("seen", &Layer::seen, nb::arg("name"),
           "Result of one of the method's `observers`: an array of float32, or a dict of several.");
}

}  // namespace

void bind_python_method(nb::module_& m) {
  bind_layer(m);
  m.def(
      "check_method", [](const std::string& name, const nb::object& object) { build(name, object); }, nb::arg("name"),
      nb::arg("object"), "Raises UsageError if the attributes of a method are wrong.");
  m.def("add_method", add_method, nb::arg("name"), nb::arg("summary"), nb::arg("factory"), nb::arg("options"));
}

}  // namespace winnow::python
