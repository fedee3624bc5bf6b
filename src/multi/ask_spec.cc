#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "base/printable.h"
#include "multi/ask_method.h"
#include "winnow/error.h"

namespace winnow {

namespace multi {

const std::vector<AskMethod>& ask_methods() {
  static const std::vector<AskMethod> all = {methods::samkv(), methods::recompute(),  methods::reuse(),
                                             methods::epic(),  methods::cacheblend(), methods::multi_infllm()};
  return all;
}

}  // namespace multi

namespace {

constexpr std::size_t kMaxLength = 4096;

template <class T>
std::vector<std::string> names(const std::vector<T>& things) {
  std::vector<std::string> out;
  std::transform(things.begin(), things.end(), std::back_inserter(out), [](const auto& t) { return t.name; });
  return out;
}

template <class T>
const T* find(const std::vector<T>& things, std::string_view name) {
  const auto found = std::find_if(things.begin(), things.end(), [&](const auto& t) { return t.name == name; });
  return found == things.end() ? nullptr : &*found;
}

/// Reads `key=value,…` over the defaults.
void read_options(const multi::AskMethod& method, std::string_view text, policy::Options& into) {
  std::set<std::string> given;
  while (true) {
    const auto comma = text.find(',');
    const auto one = text.substr(0, comma);
    const auto equals = one.find('=');
    const std::string key(one.substr(0, equals));
    if (equals == std::string_view::npos || key.empty())
      throw UsageError(fmt::format("{}: expected key=value instead of '{}'", method.name, brief(one)));
    const auto* const option = find(method.options, key);
    if (option == nullptr) {
      throw UsageError(fmt::format("{} has no option '{}': {}", method.name, brief(key),
                                   policy::suggest(key, names(method.options))));
    }
    if (!given.insert(key).second) throw UsageError(fmt::format("{}: {} is given twice", method.name, key));
    into.set(key, option->check(method.name, one.substr(equals + 1)));
    if (comma == std::string_view::npos) return;
    text.remove_prefix(comma + 1);
  }
}

enum class Which : std::uint8_t { changed, all };

std::string print(const multi::AskMethod& method, const policy::Options& options, Which which) {
  std::string out = method.name;
  for (const auto& o : method.options) {
    if (which == Which::changed && options.text(o.name) == o.default_text()) continue;
    out += fmt::format("{}{}={}", out == method.name ? ":" : ",", o.name, options.text(o.name));
  }
  return out;
}

}  // namespace

AskSpec::AskSpec() : AskSpec(parse("samkv")) {}

AskSpec AskSpec::parse(std::string_view text) {
  if (text.size() > kMaxLength)
    throw UsageError(fmt::format("the spec has {} characters, {} are possible", text.size(), kMaxLength));
  const auto colon = text.find(':');
  const auto name = text.substr(0, colon);
  const auto* const method = find(multi::ask_methods(), name);
  if (method == nullptr) {
    throw UsageError(
        fmt::format("unknown method '{}': {}", brief(name), policy::suggest(name, names(multi::ask_methods()))));
  }
  policy::Options options(method->options);
  if (colon != std::string_view::npos) read_options(*method, text.substr(colon + 1), options);
  auto canonical = ::winnow::print(*method, options, Which::changed);
  auto full = ::winnow::print(*method, options, Which::all);
  return AskSpec(std::make_shared<const Impl>(Impl{method, std::move(options), std::move(canonical), std::move(full)}));
}

std::string AskSpec::print() const { return impl_->canonical; }
std::string AskSpec::print_full() const { return impl_->full; }
std::string AskSpec::name() const { return impl_->method->name; }
bool AskSpec::needs_budget() const { return Spec::parse(impl_->method->cache_spec).method().needs_budget(); }

void AskOptions::check() const {
  if (method.needs_budget() && !budget) throw UsageError(fmt::format("{} needs a budget", method.name()));
  if (!method.needs_budget() && budget) {
    throw UsageError(
        fmt::format("{} takes no budget: what it keeps follows from the question and the documents", method.name()));
  }
}

std::vector<MethodInfo> list_ask_methods() {
  std::vector<MethodInfo> out;
  for (const auto& method : multi::ask_methods()) {
    std::vector<OptionInfo> options;
    for (const auto& o : method.options) options.push_back({o.name, o.default_text(), o.range_text(), o.effect});
    out.push_back({method.name, method.summary, method.paper, {}, std::move(options)});
  }
  return out;
}

}  // namespace winnow
