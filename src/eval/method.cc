// SPDX-License-Identifier: Apache-2.0
#include "eval/method.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "documents/asking.h"
#include "policy/spec_reader.h"
#include "winnow/methods.h"
#include "winnow/policy/method.h"
#include "winnow/recommended.h"

namespace winnow::eval {

namespace {

/// A method without a budget and a KV type yet.
struct NamedMethod {
  bool needs_budget = false;
  std::function<Method(const std::optional<Budget>& budget, const KvType& kv_type)> with;
};

NamedMethod named(const Spec& spec) {
  return {spec.method().needs_budget(), [spec](const std::optional<Budget>& budget, const KvType& kv_type) -> Method {
            return CacheOptions{spec, budget, kv_type};
          }};
}

NamedMethod named(const AskSpec& spec) {
  return {spec.needs_budget(), [spec](const std::optional<Budget>& budget, const KvType& kv_type) -> Method {
            return AskOptions{spec, budget, kv_type};
          }};
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Names of methods, wrappers and ask methods, with the recommended ones first.
std::vector<std::string> all_names() {
  std::vector<std::string> out;
  for (const auto& more : {describe_recommended(), list_methods(), list_wrappers(), list_ask_methods()}) {
    for (const auto& method : more) out.push_back(method.name);
  }
  return out;
}

std::vector<NamedMethod> parse_methods(std::string_view text, std::span<const Protocol> protocols) {
  if (const auto which = recommended_by_name(text)) {
    std::vector<NamedMethod> out;
    for (const auto protocol : protocols) out.push_back(named(recommended(protocol, *which)));
    return out;
  }
  const std::string name = policy::SpecReader(text).name();
  if (contains(policy::names_of(list_ask_methods()), name)) return {named(AskSpec::parse(text))};
  if (contains(all_names(), name)) return {named(Spec::parse(text))};
  policy::refuse_unknown("method", name, all_names());
}

std::vector<std::optional<Budget>> budgets_of(const NamedMethod& method, std::span<const std::string> budgets) {
  if (!method.needs_budget || budgets.empty()) return {std::nullopt};
  std::vector<std::optional<Budget>> out;
  for (const auto& budget : budgets) out.emplace_back(Budget::parse(budget));
  return out;
}

}  // namespace

Method::Method(CacheOptions cache) : cache_(std::move(cache)) { cache_.check(); }

Method::Method(const AskOptions& options) : cache_(documents::cache_of(options)), ask_(options) {}

bool is_method(std::string_view text) {
  return contains(all_names(), std::string(text.substr(0, text.find_first_of(":("))));
}

std::vector<Method> methods_of(std::span<const std::string> lists, std::span<const std::string> budgets,
                               std::span<const std::string> kv_types, std::span<const Protocol> protocols) {
  std::vector<NamedMethod> named;
  for (const auto& list : lists) {
    for (const auto text : policy::split_list(list)) {
      for (auto& method : parse_methods(text, protocols)) named.push_back(std::move(method));
    }
  }
  std::vector<Method> out;
  for (const auto& method : named) {
    for (const auto& kv_type : kv_types) {
      for (const auto& budget : budgets_of(method, budgets)) {
        auto one = method.with(budget, KvType::parse(kv_type));
        if (std::find(out.begin(), out.end(), one) == out.end()) out.push_back(std::move(one));
      }
    }
  }
  return out;
}

}  // namespace winnow::eval
