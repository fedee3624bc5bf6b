// SPDX-License-Identifier: Apache-2.0
#include "winnow/recommended.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

#include "winnow/policy/method.h"

namespace winnow {

Spec recommended(Protocol protocol) {
  if (protocol == Protocol::agnostic) return Spec::parse("kvzip:rank=model");
  return Spec::parse(
      "refit(ada(kvzip(span(snapkv:window=question,rows=max,kernel=1,gqa=max):power=1.5):chunk=512,after=chunk):"
      "floor=0,over=model)");
}

MethodInfo describe_recommended() {
  return {std::string(kAuto),
          "the recommended method",
          "",
          {{"question-aware", recommended(Protocol::aware).print()},
           {"question-agnostic", recommended(Protocol::agnostic).print()}},
          {}};
}

Spec spec_for(std::string_view text, Protocol protocol) {
  return text == kAuto ? recommended(protocol) : Spec::parse(text);
}

std::string method_label(const std::string& spec) {
  static const std::string aware = recommended(Protocol::aware).print();
  static const std::string agnostic = recommended(Protocol::agnostic).print();
  return spec == aware ? std::string(kAuto) : spec == agnostic ? fmt::format("{} (question-agnostic)", kAuto) : spec;
}

std::string label_notes(const std::vector<std::string>& specs) {
  std::string out;
  for (const auto protocol : kProtocols) {
    const auto spec = recommended(protocol).print();
    if (std::ranges::find(specs, spec) != specs.end())
      out += fmt::format("{}{} is {}.", out.empty() ? "" : " ", method_label(spec), spec);
  }
  return out;
}

KvType recommended_type(const Spec& spec, const std::optional<Budget>& budget) {
  const bool is_limited = spec.method().needs_budget() && budget && budget->unit() == Budget::Unit::bytes;
  return is_limited ? KvType{ElementType::q8_0, ElementType::q8_0} : KvType();
}

CacheChoice CacheChoice::parse(std::optional<std::string_view> kv, std::optional<Budget> budget,
                               std::optional<std::string_view> kv_type) {
  CacheChoice out{Spec(), budget, {}};
  if (kv_type) out.kv_type = KvType::parse(*kv_type);
  if (kv) {
    out.name_method(*kv);
  } else if (budget) {
    out.spec.reset();
  }
  for (const auto protocol : {Protocol::aware, Protocol::agnostic}) out.with(protocol).check();
  return out;
}

void CacheChoice::name_method(std::string_view kv) {
  if (kv == kAuto) {
    spec.reset();
  } else {
    spec = Spec::parse(kv);
  }
}

CacheOptions CacheChoice::with(Protocol protocol) const {
  auto method = spec ? *spec : recommended(protocol);
  const auto type = kv_type ? *kv_type : recommended_type(method, budget);
  return {std::move(method), budget, type};
}

std::string CacheChoice::method_name() const { return spec ? spec->print() : std::string(kAuto); }

}  // namespace winnow
