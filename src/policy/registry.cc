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

namespace winnow {

namespace policy {

Preset with_positions(Preset preset) {
  preset.options.push_back({"positions", Option::Choice{"absolute", {"absolute", "cache"}},
                            "effective positions of entries: those in the text, or ranks in the cache"});
  preset.build = [build = std::move(preset.build)](const Options& options) {
    Method method = build(options);
    if (options.text("positions") == "cache") method.positions = Positions::cache;
    return method;
  };
  return preset;
}

const Registry& built_in() {
  static const Registry registry{
      methods::all(),
      {wrappers::ada(), wrappers::pyramid(), wrappers::chunk(), wrappers::span(), wrappers::lookahead(),
       wrappers::critical(), wrappers::refit(), wrappers::decoding(), wrappers::kvzip(), wrappers::quest()},
  };
  return registry;
}

namespace {

struct Registered {
  std::mutex mutex;  ///< protects the pointer; the registry itself never changes
  std::shared_ptr<const Registry> all = std::make_shared<const Registry>(built_in());
};

Registered& the_registered() {
  static Registered registered;
  return registered;
}

void check_name(const std::string& name, const Registry& registry) {
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyz0123456789-";
  if (name.empty() || name.find_first_not_of(kAllowed) != std::string::npos) {
    throw UsageError(fmt::format("a method cannot be called '{}': a name has only a to z, 0 to 9 and -", brief(name)));
  }
  const auto has_it = [&](const auto& one) { return one.name == name; };
  if (std::ranges::any_of(registry.presets, has_it) || std::ranges::any_of(registry.wrappers, has_it))
    throw UsageError(fmt::format("there is already a method called '{}'", name));
}

}  // namespace

std::shared_ptr<const Registry> registered() {
  auto& known = the_registered();
  const std::lock_guard lock(known.mutex);
  return known.all;
}

std::vector<CalibrationPart> registered_calibrations() {
  std::vector<CalibrationPart> out;
  const auto all = registered();
  for (const auto& preset : all->presets) {
    const auto part = preset.build(Options(preset.options)).calibration;
    const auto is_same = [&](const CalibrationPart& other) { return other.name == part->name; };
    if (part && std::ranges::none_of(out, is_same)) out.push_back(*part);
  }
  return out;
}

void add_method(Preset preset) {
  auto& known = the_registered();
  const std::lock_guard lock(known.mutex);
  check_name(preset.name, *known.all);
  Registry more = *known.all;
  more.presets.push_back(std::move(preset));
  known.all = std::make_shared<const Registry>(std::move(more));
}

}  // namespace policy
}  // namespace winnow
