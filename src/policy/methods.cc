// SPDX-License-Identifier: Apache-2.0
#include "winnow/methods.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "policy/observers/layer_observers.h"
#include "winnow/policy/registry.h"
#include "winnow/spec.h"

namespace winnow {

namespace {

std::string schedule_text(const policy::Method& method) {
  switch (method.schedule) {
    case policy::Schedule::keep:
      return "nothing is ever evicted";
    case policy::Schedule::once:
      return "once, when the prompt has been read";
    case policy::Schedule::step:
      return method.decoding.buffer == 1
                 ? "when the prompt has been read, then at every decode step"
                 : fmt::format("when the prompt has been read, then every {} tokens", method.decoding.buffer);
  }
  return {};
}

std::string observed(const policy::Method& method) {
  std::vector<std::string> out;
  for (const auto& part : method.observers.parts()) out.push_back(part.text);
  return out.empty() ? "nothing" : fmt::format("{}", fmt::join(out, "; "));
}

/// True if an observer needs to see all tokens and stores no state of them, so that a text with known keys and values
/// is read anew.
bool reads_anew(const policy::Method& method) {
  constexpr policy::LayerPrompt kPrompt{.tokens = 8192, .group = 2, .head_dim = 64, .kv_heads = 2};
  const policy::Asking asking{.prompt = kPrompt, .budget = 512, .first_layer = kPrompt};
  const auto requests = policy::requests_of(method, asking, policy::Reading::whole);
  return std::ranges::any_of(
      requests, [&](const auto& one) { return one && one->first_row(kPrompt) == 0 && one->state_name().empty(); });
}

std::vector<PartInfo> parts_of(const policy::Method& method) {
  const auto text = [](const auto& part, const char* none) { return part ? part.text : std::string(none); };
  std::vector<PartInfo> out;
  if (method.calibration) out.push_back({"calibration", method.calibration->text});
  const std::vector<PartInfo> always{
      {"observe", observed(method)},
      {"score", method.selection.join ? fmt::format("{}; {}", method.selection.score.text, method.selection.join.text)
                                      : text(method.selection.score, "none")},
      {"budget over layers", text(method.selection.over_layers, "uniform")},
      {"budget over heads", text(method.selection.over_heads, "uniform")},
      {"always kept", text(method.selection.always_kept, "none")},
      {"select", text(method.selection.select, "the entries with the highest scores in each head")},
      {"merge", text(method.lanes.merge, "nothing")},
      {"schedule", schedule_text(method)},
      {"evict", method.decoding.step ? method.decoding.step.text : text(method.decoding.evict, "none")},
      {"attend", text(method.decoding.attend, "to all kept entries")},
      {"positions",
       method.positions == policy::Positions::cache ? "the rank in the cache" : "the position in the text"}};
  out.insert(out.end(), always.begin(), always.end());
  if (reads_anew(method)) out.push_back({"known text", "is read anew, because all of its tokens are observed"});
  return out;
}

std::vector<OptionInfo> infos_of(const std::vector<policy::Option>& options) {
  std::vector<OptionInfo> out;
  for (const auto& o : options) out.push_back({o.name, o.default_text(), o.range_text(), o.effect});
  return out;
}

}  // namespace

std::vector<MethodInfo> list_methods() {
  std::vector<MethodInfo> out;
  const auto all = policy::registered();
  for (const auto& preset : all->presets) {
    const auto parts = parts_of(preset.build(policy::Options(preset.options)));
    out.push_back({preset.name, preset.summary, preset.paper, parts, infos_of(preset.options)});
  }
  return out;
}

std::vector<MethodInfo> list_wrappers() {
  std::vector<MethodInfo> out;
  const auto all = policy::registered();
  for (const auto& w : all->wrappers) out.push_back({w.name, w.summary, w.paper, {}, infos_of(w.options)});
  return out;
}

MethodInfo describe_method(std::string_view spec) {
  const Spec parsed = Spec::parse(spec);
  return {parsed.print(), parsed.print_full(), "", parts_of(parsed.method()), {}};
}

}  // namespace winnow
