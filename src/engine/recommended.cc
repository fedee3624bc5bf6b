// SPDX-License-Identifier: Apache-2.0
#include "winnow/recommended.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

#include "winnow/policy/method.h"

namespace winnow {

namespace {

std::string_view spec_of(Protocol protocol, Recommended which) {
  const bool aware = protocol == Protocol::aware;
  switch (which) {
    case Recommended::best:
      return aware ? "refit(ada(kvzip(span(snapkv:window=question,question-share=25,rows=max,kernel=1,gqa=max):"
                     "power=1.5):chunk=512,after=chunk):floor=0,over=model)"
                   : "kvzip:rank=model";
    case Recommended::fast:
      return aware ? "refit(ada(span(snapkv:window=question,question-share=25,rows=max,kernel=1,gqa=max)):floor=0)"
                   : "expected-attention:softmax=all";
  }
  return {};
}

struct Label {
  std::string spec;
  std::string text;
};

const std::vector<Label>& labels() {
  static const auto out = [] {
    std::vector<Label> all;
    for (const auto which : kRecommended) {
      for (const auto protocol : kProtocols)
        all.push_back({recommended(protocol, which).print(),
                       fmt::format("{}{}", name_of(which), protocol == Protocol::aware ? "" : " (question-agnostic)")});
    }
    return all;
  }();
  return out;
}

MethodInfo described(Recommended which, std::string summary) {
  return {std::string(name_of(which)),
          std::move(summary),
          "",
          {{"question-aware", recommended(Protocol::aware, which).print()},
           {"question-agnostic", recommended(Protocol::agnostic, which).print()}},
          {}};
}

}  // namespace

std::optional<Recommended> recommended_by_name(std::string_view name) {
  const auto* const found = std::ranges::find_if(kRecommended, [&](auto which) { return name_of(which) == name; });
  return found == kRecommended.end() ? std::nullopt : std::optional(*found);
}

Spec recommended(Protocol protocol, Recommended which) { return Spec::parse(spec_of(protocol, which)); }

std::vector<MethodInfo> describe_recommended() {
  return {described(Recommended::best, "the recommended method"),
          described(Recommended::fast, "the recommended method if reading must be fast")};
}

Spec spec_for(std::string_view text, Protocol protocol) {
  const auto which = recommended_by_name(text);
  return which ? recommended(protocol, *which) : Spec::parse(text);
}

std::string method_label(const std::string& spec) {
  const auto found = std::ranges::find(labels(), spec, &Label::spec);
  return found == labels().end() ? spec : found->text;
}

std::string label_notes(const std::vector<std::string>& specs) {
  std::string out;
  for (const auto& [spec, text] : labels()) {
    if (std::ranges::find(specs, spec) != specs.end())
      out += fmt::format("{}{} is {}.", out.empty() ? "" : " ", text, spec);
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
    out.method = Recommended::best;
  }
  for (const auto protocol : {Protocol::aware, Protocol::agnostic}) out.with(protocol).check();
  return out;
}

void CacheChoice::name_method(std::string_view kv) {
  if (const auto which = recommended_by_name(kv)) {
    method = *which;
  } else {
    method = Spec::parse(kv);
  }
}

CacheOptions CacheChoice::with(Protocol protocol) const {
  const auto* const given = std::get_if<Spec>(&method);
  auto spec = given != nullptr ? *given : recommended(protocol, std::get<Recommended>(method));
  const auto type = kv_type ? *kv_type : recommended_type(spec, budget);
  return {std::move(spec), budget, type};
}

std::string CacheChoice::method_name() const {
  const auto* const given = std::get_if<Spec>(&method);
  return given != nullptr ? given->print() : std::string(name_of(std::get<Recommended>(method)));
}

}  // namespace winnow
