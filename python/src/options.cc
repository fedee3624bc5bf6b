// SPDX-License-Identifier: Apache-2.0
#include "options.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <spdlog/fmt/fmt.h>

#include "winnow/error.h"
#include "winnow/recommended.h"

namespace winnow::python {

namespace {

CacheChoice make(const std::optional<std::string>& spec, const nb::object& budget,
                 const std::optional<std::string>& kv_type = {}) {
  return CacheChoice::parse(spec, budget_of(budget), kv_type);
}

std::string part_of(const nb::handle& part, const char* what) {
  if (!nb::isinstance<nb::str>(part)) throw UsageError(fmt::format("{} is not a {}: give a string", shown(part), what));
  return text_of(nb::borrow<nb::str>(part));
}

CacheChoice from_tuple(const nb::tuple& parts) {
  if (parts.empty() || parts.size() > 3)
    throw UsageError(fmt::format("{} has {} elements: a cache is (spec, budget) or (spec, budget, kv_type)",
                                 shown(parts), parts.size()));
  return make(part_of(parts[0], "spec"), parts.size() > 1 ? nb::object(parts[1]) : nb::none(),
              parts.size() > 2 ? std::optional(part_of(parts[2], "kv_type")) : std::nullopt);
}

bool is_one(const nb::object& caches) {
  return nb::isinstance<nb::str>(caches) || nb::isinstance<nb::tuple>(caches) || nb::isinstance<CacheChoice>(caches);
}

CacheChoice choice_of(const nb::handle& cache) {
  if (nb::isinstance<CacheChoice>(cache)) return nb::cast<CacheChoice>(cache);
  if (nb::isinstance<nb::str>(cache)) return make(text_of(nb::borrow<nb::str>(cache)), nb::none());
  if (nb::isinstance<nb::tuple>(cache)) return from_tuple(nb::cast<nb::tuple>(cache));
  throw UsageError(
      fmt::format("{} is not a cache: give a spec, (spec, budget) or (spec, budget, kv_type)", shown(cache)));
}

/// The same for both protocols, whose recommended methods need a budget.
KvType type_of(const CacheChoice& choice) { return choice.with(Protocol::aware).kv_type; }

}  // namespace

std::optional<Budget> budget_of(const nb::object& budget) {
  if (budget.is_none()) return std::nullopt;
  if (nb::isinstance<nb::str>(budget)) return Budget::parse(text_of(nb::borrow<nb::str>(budget)));
  // numpy's integers have __index__, as int does
  if (PyIndex_Check(budget.ptr()) != 0 && !nb::isinstance<nb::bool_>(budget))
    return Budget::parse(text_of(nb::str(nb::steal(PyNumber_Index(budget.ptr())))));
  throw UsageError(fmt::format("{} is not a budget: give a number of entries, '10%' or '64MiB'", shown(budget)));
}

CacheOptions cache_options_of(const nb::handle& cache, Protocol protocol) { return choice_of(cache).with(protocol); }

std::vector<CacheOptions> all_cache_options_of(const nb::object& caches, Protocol protocol) {
  if (is_one(caches)) return {cache_options_of(caches, protocol)};
  std::vector<CacheOptions> out;
  for (const nb::handle cache : nb::iter(caches)) out.push_back(cache_options_of(cache, protocol));
  if (out.empty()) throw UsageError("there is no cache to fill: give at least one");
  return out;
}

Protocol protocol_of(const std::string& name) {
  if (name == "question-aware") return Protocol::aware;
  if (name == "question-agnostic") return Protocol::agnostic;
  throw UsageError(fmt::format("'{}' is not a protocol: give question-aware or question-agnostic", name));
}

PromptFormat format_of(const std::string& name) {
  if (name == "chat") return PromptFormat::chat;
  if (name == "raw") return PromptFormat::raw;
  throw UsageError(fmt::format("'{}' is not a prompt format: give chat or raw", name));
}

void bind_options(nb::module_& m) {
  nb::class_<CacheChoice>(m, "CacheOptions", "Options of a sequence's cache.")
      .def(
          "__init__",
          [](CacheChoice* self, const std::optional<std::string>& spec, const nb::object& budget,
             const std::optional<std::string>& kv_type) { new (self) CacheChoice(make(spec, budget, kv_type)); },
          nb::arg("spec").none() = nb::none(), nb::arg("budget").none() = nb::none(),
          nb::arg("kv_type").none() = nb::none(),
          nb::sig("def __init__(self, spec: str | None = None, budget: int | str | None = None, "
                  "kv_type: str | None = None) -> None"),
          "spec: None is 'auto' if there is a budget, else 'full'. 'auto' is the method recommended for the prompt's\n"
          "protocol. budget: entries per KV head (512), a share of the prompt ('10%') or bytes ('64MiB').\n"
          "kv_type: None is 'q8_0' with a budget in bytes, else 'f16'.\n"
          "Raises UsageError for an unknown method, option or type, and if a budget is missing.")
      .def_prop_ro("spec", &CacheChoice::method_name, "In canonical form, or 'auto' or 'auto:fast'.")
      .def_prop_ro(
          "budget",
          [](const CacheChoice& o) { return o.budget ? nb::object(nb::cast(o.budget->print())) : nb::none(); },
          nb::sig("def budget(self) -> str | None"))
      .def_prop_ro("kv_type", [](const CacheChoice& o) { return type_of(o).print(); })
      .def("__repr__", [](const CacheChoice& o) {
        return fmt::format("CacheOptions('{}', {}, '{}')", o.method_name(),
                           o.budget ? fmt::format("'{}'", o.budget->print()) : "None", type_of(o).print());
      });
}

}  // namespace winnow::python
