#include "winnow/spec.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/printable.h"
#include "policy/registry.h"
#include "winnow/error.h"

namespace winnow {

namespace {

constexpr int kMaxDepth = 8;
constexpr std::size_t kMaxLength = 4096;

/// What a spec, or the inner one of a wrapper, has been read to.
struct Parsed {
  policy::Method method;
  std::string canonical;
  std::string full;
};

/// Options as they were typed, on top of the defaults.
struct Given {
  policy::Options values;
  std::set<std::string> keys;  ///< those that were typed
};

/// ":key=value,…" of all options, in declared order.
std::string all(const policy::Options& values, const std::vector<policy::Option>& declared) {
  std::string out;
  for (const auto& o : declared) out += fmt::format("{}{}={}", out.empty() ? ":" : ",", o.name, values.text(o.name));
  return out;
}

/// The same of those that differ from their default.
std::string changed(const policy::Options& values, const std::vector<policy::Option>& declared) {
  std::vector<policy::Option> different;
  std::copy_if(declared.begin(), declared.end(), std::back_inserter(different),
               [&](const auto& o) { return values.text(o.name) != o.default_text(); });
  return all(values, different);
}

/// What `positions` is for methods that evict at every step, where a text does not say.
enum class OpenPositions : std::uint8_t { preset, cache };

/// spec := name [":" key "=" value {"," key "=" value}] | name "(" spec ")" [":" …]
class Parser {
 public:
  Parser(std::string_view text, const policy::Registry& registry, OpenPositions open = OpenPositions::preset)
      : text_(text), registry_(registry), open_(open) {
    if (text.size() > kMaxLength)
      throw UsageError(fmt::format("the spec has {} characters, {} are possible", text.size(), kMaxLength));
  }

  Parsed one() {
    Parsed out = spec(1);
    if (at_ < text_.size()) fail(fmt::format("unexpected '{}'", brief(text_.substr(at_, 1))));
    return out;
  }

  std::vector<Parsed> list() {
    std::vector<Parsed> out{spec(1)};
    while (take(',')) out.push_back(spec(1));
    if (at_ < text_.size()) fail(fmt::format("unexpected '{}'", brief(text_.substr(at_, 1))));
    return out;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw UsageError(fmt::format("spec '{}': {} at character {}", brief(text_), what, at_ + 1));
  }

  bool take(char c) {
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  std::string_view word(const char* what, std::string_view ends) {
    const std::size_t begin = at_;
    while (at_ < text_.size() && ends.find(text_[at_]) == std::string_view::npos) ++at_;
    if (at_ == begin) fail(fmt::format("expected {}", what));
    return text_.substr(begin, at_ - begin);
  }

  Parsed spec(int depth) {
    if (depth > kMaxDepth) fail(fmt::format("more than {} wrappers", kMaxDepth - 1));
    const std::string name(word("a method's name", "():,="));
    return take('(') ? wrapper(name, depth) : preset(name);
  }

  Parsed preset(const std::string& name) {
    const auto found =
        std::find_if(registry_.presets.begin(), registry_.presets.end(), [&](const auto& p) { return p.name == name; });
    if (found == registry_.presets.end()) {
      if (is_wrapper(name)) fail(fmt::format("{} needs a method in brackets", name));
      throw UsageError(
          fmt::format("unknown method '{}': {}", brief(name), policy::suggest(name, names(registry_.presets))));
    }
    Given given = options(name, found->options);
    policy::Method method = build(*found, given.values);
    if (settle_positions(given, found->options, method)) method = build(*found, given.values);
    method.name = name;
    return {std::move(method), name + changed(given.values, found->options), name + all(given.values, found->options)};
  }

  /// Whether the method's positions were open and are now settled otherwise than its preset does.
  bool settle_positions(Given& given, const std::vector<policy::Option>& declared, const policy::Method& method) const {
    const bool may = std::any_of(declared.begin(), declared.end(), [](const auto& o) { return o.name == "positions"; });
    if (open_ == OpenPositions::preset || !may || given.keys.count("positions") > 0 ||
        method.schedule != policy::Schedule::step)
      return false;
    given.values.set("positions", std::string("cache"));
    return true;
  }

  /// Options that are good one by one but not together.
  static policy::Method build(const policy::Preset& preset, const policy::Options& values) try {
    return preset.build(values);
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("{}: {}", preset.name, error.what()));
  }

  Parsed wrapper(const std::string& name, int depth) {
    const auto found = std::find_if(registry_.wrappers.begin(), registry_.wrappers.end(),
                                    [&](const auto& w) { return w.name == name; });
    if (found == registry_.wrappers.end()) {
      throw UsageError(
          fmt::format("unknown wrapper '{}': {}", brief(name), policy::suggest(name, names(registry_.wrappers))));
    }
    const Parsed inner = spec(depth + 1);
    if (!take(')')) fail("expected ')'");
    const Given given = options(name, found->options);
    policy::Method method = found->apply(inner.method, given.values);
    method.name = fmt::format("{}({})", name, inner.method.name);
    return {std::move(method), fmt::format("{}({}){}", name, inner.canonical, changed(given.values, found->options)),
            fmt::format("{}({}){}", name, inner.full, all(given.values, found->options))};
  }

  Given options(const std::string& owner, const std::vector<policy::Option>& declared) {
    Given given{policy::Options(declared), {}};
    if (take(':')) {
      do option(owner, declared, given);
      while (another_option());
    }
    return given;
  }

  void option(const std::string& owner, const std::vector<policy::Option>& declared, Given& given) {
    const std::string key(word("an option's name", "():,="));
    if (!take('=')) fail(fmt::format("expected '=' after {}", brief(key)));
    const auto value = word("a value", "():,=");
    const auto found = std::find_if(declared.begin(), declared.end(), [&](const auto& o) { return o.name == key; });
    if (found == declared.end()) {
      throw UsageError(
          fmt::format("{} has no option '{}': {}", owner, brief(key), policy::suggest(key, names(declared))));
    }
    if (!given.keys.insert(key).second) fail(fmt::format("{} is given twice", key));
    given.values.set(key, found->check(owner, value));
  }

  /// A comma goes on with this spec's options when `key=` follows it; else it is a list's.
  bool another_option() {
    if (at_ == text_.size() || text_[at_] != ',') return false;
    const auto end = text_.find_first_of("():,=", at_ + 1);
    if (end == std::string_view::npos || text_[end] != '=') return false;
    ++at_;
    return true;
  }

  bool is_wrapper(const std::string& name) const {
    return std::any_of(registry_.wrappers.begin(), registry_.wrappers.end(),
                       [&](const auto& w) { return w.name == name; });
  }

  template <class T>
  static std::vector<std::string> names(const std::vector<T>& things) {
    std::vector<std::string> out;
    for (const auto& thing : things) out.push_back(thing.name);
    return out;
  }

  std::string_view text_;
  const policy::Registry& registry_;
  OpenPositions open_;
  std::size_t at_ = 0;
};

}  // namespace

Spec::Spec() : Spec(parse("full")) {}

Spec::Spec(policy::Method method, std::string canonical, std::string full)
    : canonical_(std::move(canonical)),
      full_(std::move(full)),
      method_(std::make_shared<const policy::Method>(std::move(method))) {}

Spec Spec::parse(std::string_view text) { return parse(text, policy::built_in()); }

Spec Spec::parse(std::string_view text, const policy::Registry& registry) {
  Parsed parsed = Parser(text, registry).one();
  return {std::move(parsed.method), std::move(parsed.canonical), std::move(parsed.full)};
}

Spec Spec::parse_endless(std::string_view text) {
  Parsed parsed = Parser(text, policy::built_in(), OpenPositions::cache).one();
  return {std::move(parsed.method), std::move(parsed.canonical), std::move(parsed.full)};
}

std::vector<Spec> Spec::parse_list(std::string_view text) {
  std::vector<Spec> out;
  for (auto& parsed : Parser(text, policy::built_in()).list()) {
    out.push_back({std::move(parsed.method), std::move(parsed.canonical), std::move(parsed.full)});
  }
  return out;
}

std::string Spec::print() const { return canonical_; }
std::string Spec::print_full() const { return full_; }

}  // namespace winnow
