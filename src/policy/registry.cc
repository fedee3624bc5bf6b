// SPDX-License-Identifier: Apache-2.0
#include "winnow/policy/registry.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <mutex>
#include <string_view>
#include <utility>

#include "base/printable.h"
#include "policy/methods/presets.h"
#include "policy/wrappers.h"
#include "winnow/error.h"
#include "winnow/methods.h"
#include "winnow/spec.h"

namespace winnow {

namespace policy {

Preset with_positions(Preset preset) {
  preset.options.push_back(
      {"positions", Option::Choice{"absolute", {"absolute", "cache"}},
       "whether entries count as lying where they were in the text, or at their index in the cache"});
  preset.build = [build = std::move(preset.build)](const Options& options) {
    Method method = build(options);
    if (options.text("positions") == "cache") method.positions = Positions::cache;
    return method;
  };
  return preset;
}

const Registry& built_in() {
  static const Registry registry{
      {
          methods::full(),
          methods::streaming_llm(),
          with_positions(methods::h2o()),
          with_positions(methods::tova()),
          with_positions(methods::snapkv()),
          with_positions(methods::pyramidkv()),
          with_positions(methods::nacl()),
          with_positions(methods::ada_snapkv()),
          with_positions(methods::ada_pyramid()),
          with_positions(methods::sage_kv()),
          with_positions(methods::ahakv()),
          methods::ems(),
          with_positions(methods::cam()),
          methods::quest(),
          methods::infllm(),
          with_positions(methods::random()),
          with_positions(methods::knorm()),
          with_positions(methods::keydiff()),
          with_positions(methods::expected_attention()),
          with_positions(methods::kvzip()),
      },
      {wrappers::ada(), wrappers::pyramid(), wrappers::chunk()},
  };
  return registry;
}

namespace {

struct Registered {
  std::mutex mutex;  ///< of the pointer; what it points to never changes
  std::shared_ptr<const Registry> all = std::make_shared<const Registry>(built_in());
};

Registered& the_registered() {
  static Registered registered;
  return registered;
}

void check_name(const std::string& name, const Registry& registry) {
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyz0123456789-";
  if (name.empty() || name.find_first_not_of(kAllowed) != std::string::npos) {
    throw UsageError(
        fmt::format("a method cannot have the name '{}': names are made of a to z, 0 to 9 and -", brief(name)));
  }
  const auto has_it = [&](const auto& one) { return one.name == name; };
  if (std::ranges::any_of(registry.presets, has_it) || std::ranges::any_of(registry.wrappers, has_it))
    throw UsageError(fmt::format("there is a method of the name '{}' already", name));
}

}  // namespace

std::shared_ptr<const Registry> registered() {
  auto& known = the_registered();
  const std::lock_guard lock(known.mutex);
  return known.all;
}

void add_method(Preset preset) {
  auto& known = the_registered();
  const std::lock_guard lock(known.mutex);
  check_name(preset.name, *known.all);
  Registry more = *known.all;
  more.presets.push_back(std::move(preset));
  known.all = std::make_shared<const Registry>(std::move(more));
}

namespace {

std::string schedule_text(const Method& method) {
  switch (method.schedule) {
    case Schedule::keep:
      return "nothing is ever evicted";
    case Schedule::once:
      return "once, when the prompt has been read";
    case Schedule::step:
      return "when the prompt has been read, then at every decode step";
  }
  return {};
}

std::vector<PartInfo> parts_of(const Method& method) {
  const auto table = method.selection.over_all_heads ? method.selection.over_all_heads.text : "uniform";
  const auto text = [](const auto& part, const char* none) { return part ? part.text : std::string(none); };
  return {{"observe", text(method.reading.observe, "nothing")},
          {"replay", text(method.reading.replay, "nothing")},
          {"score", text(method.selection.score, "none")},
          {"budget over layers", text(method.selection.over_layers, table.c_str())},
          {"budget over heads", text(method.selection.over_heads, table.c_str())},
          {"forced", text(method.selection.always_kept, "none")},
          {"select", text(method.selection.select, "the best of each head")},
          {"schedule", schedule_text(method)},
          {"evict", method.decoding.step ? method.decoding.step.text : text(method.decoding.evict, "none")},
          {"attend", text(method.decoding.attend, "to all that is kept")},
          {"positions", method.positions == Positions::cache ? "the index in the cache" : "the place in the text"}};
}

}  // namespace
}  // namespace policy

namespace {

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
    const auto parts = policy::parts_of(preset.build(policy::Options(preset.options)));
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
  return {parsed.print(), parsed.print_full(), "", policy::parts_of(parsed.method()), {}};
}

}  // namespace winnow
