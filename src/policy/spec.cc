// SPDX-License-Identifier: Apache-2.0
#include "winnow/spec.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

#include "policy/plan.h"
#include "policy/spec_reader.h"
#include "winnow/error.h"
#include "winnow/policy/registry.h"
#include "winnow/recommended.h"

namespace winnow {

namespace {

constexpr int kMaxDepth = 8;

/// Result of parsing a spec, or the inner spec of a wrapper.
struct Parsed {
  policy::Method method;
  std::string canonical;
  std::string full;
};

/// Default of `positions` for methods that evict at every step.
enum class OpenPositions : std::uint8_t { preset, cache };

/// Checks that only one part sets the budgets of heads.
void check_budget_parts(const policy::Method& method) {
  const auto& selection = method.selection;
  if (selection.heads_of_all_layers && (!selection.over_heads || selection.over_layers))
    throw UsageError("heads_of_all_layers needs over_heads, and cannot be set together with over_layers");
}

/// spec := name [":" key "=" value {"," key "=" value}] | name "(" spec ")" [":" …]
class Parser {
 public:
  Parser(std::string_view text, const policy::Registry& registry, OpenPositions open = OpenPositions::preset)
      : reader_(text), registry_(registry), open_(open) {}

  Parsed one() {
    Parsed out = spec(1);
    reader_.end();
    return out;
  }

 private:
  Parsed spec(int depth) {
    if (depth > kMaxDepth) reader_.fail(fmt::format("more than {} wrappers", kMaxDepth - 1));
    const std::string name = reader_.name();
    return reader_.take('(') ? wrapper(name, depth) : preset(name, depth);
  }

  Parsed preset(const std::string& name, int depth) {
    if (is_wrapper(name) && !is_preset(name)) reader_.fail(fmt::format("{} needs a method in brackets", name));
    if (name == kAuto) reader_.fail("auto and auto:fast are whole specs, without brackets or other options");
    if (!is_preset(name)) policy::refuse_unknown("method", name, names_at(depth));
    const auto& found = policy::find_named(registry_.presets, name, "method");
    policy::Given given = reader_.options(name, found.options);
    policy::Method method = build(found, given.values);
    if (choose_open_positions(given, found.options, method)) method = build(found, given.values);
    method.name = name;
    return {std::move(method), name + print_changed(given.values, found.options),
            name + print_all(given.values, found.options)};
  }

  /// Sets the positions of a method that evicts at every step, unless the spec does. Returns true if that changed them.
  bool choose_open_positions(policy::Given& given, const std::vector<policy::Option>& declared,
                             const policy::Method& method) const {
    const bool may = std::any_of(declared.begin(), declared.end(), [](const auto& o) { return o.name == "positions"; });
    if (open_ == OpenPositions::preset || !may || given.keys.count("positions") > 0 ||
        method.schedule != policy::Schedule::step)
      return false;
    given.values.set("positions", std::string("cache"));
    return true;
  }

  /// Builds a method. Fails for options that contradict each other.
  static policy::Method build(const policy::Preset& preset, const policy::Options& values) try {
    policy::Method method = preset.build(values);
    check_budget_parts(method);
    return method;
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("{}: {}", preset.name, error.what()));
  }

  Parsed wrapper(const std::string& name, int depth) {
    const auto& found = policy::find_named(registry_.wrappers, name, "wrapper");
    const Parsed inner = spec(depth + 1);
    if (!reader_.take(')')) reader_.fail("expected ')'");
    const policy::Given given = reader_.options(name, found.options);
    policy::Method method = found.apply(inner.method, given.values);
    method.name = fmt::format("{}({})", name, inner.method.name);
    return {std::move(method),
            fmt::format("{}({}){}", name, inner.canonical, print_changed(given.values, found.options)),
            fmt::format("{}({}){}", name, inner.full, print_all(given.values, found.options))};
  }

  /// Names that are valid at a depth. A recommended one can only be a whole spec, and callers recognise it before they
  /// parse.
  std::vector<std::string> names_at(int depth) const {
    std::vector<std::string> out;
    if (depth == 1) {
      for (const auto which : kRecommended) out.emplace_back(name_of(which));
    }
    for (const auto& preset : registry_.presets) out.push_back(preset.name);
    for (const auto& wrapper : registry_.wrappers) out.push_back(wrapper.name + "(X)");
    return out;
  }

  bool is_wrapper(const std::string& name) const { return has(registry_.wrappers, name); }
  bool is_preset(const std::string& name) const { return has(registry_.presets, name); }

  template <class T>
  static bool has(const std::vector<T>& things, const std::string& name) {
    return std::any_of(things.begin(), things.end(), [&](const T& thing) { return thing.name == name; });
  }

  policy::SpecReader reader_;
  const policy::Registry& registry_;
  OpenPositions open_;
};

}  // namespace

Spec::Spec() : Spec(parse("full")) {}

Spec::Spec(policy::Method method, std::string canonical, std::string full)
    : canonical_(std::move(canonical)),
      full_(std::move(full)),
      method_(std::make_shared<const policy::Method>(std::move(method))) {}

Spec Spec::parse(std::string_view text) { return parse(text, *policy::registered()); }

Spec Spec::parse(std::string_view text, const policy::Registry& registry) {
  Parsed parsed = Parser(text, registry).one();
  return {std::move(parsed.method), std::move(parsed.canonical), std::move(parsed.full)};
}

Spec Spec::parse_endless(std::string_view text) {
  const auto registry = policy::registered();
  Parsed parsed = Parser(text, *registry, OpenPositions::cache).one();
  return {std::move(parsed.method), std::move(parsed.canonical), std::move(parsed.full)};
}

std::vector<Spec> Spec::parse_list(std::string_view text) {
  const auto registry = policy::registered();
  std::vector<Spec> out;
  for (const auto spec : policy::split_list(text)) out.push_back(parse(spec, *registry));
  return out;
}

Spec Spec::drafter() const {
  const auto& drafter = *method_->draft->drafter;
  return {drafter, drafter.name, drafter.name};
}

std::string Spec::print() const { return canonical_; }
std::string Spec::print_full() const { return full_; }

}  // namespace winnow
