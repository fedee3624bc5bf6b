// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "winnow/export.h"
#include "winnow/policy/method.h"
#include "winnow/policy/options.h"

namespace winnow::policy {

/// A published method under its name: which parts it is made of, and its options.
struct Preset {
  std::string name;
  std::string summary;
  std::string paper;
  std::vector<Option> options;
  std::function<Method(const Options&)> build;
};

/// `name(X)`: a method made of another one by exchanging parts.
struct Wrapper {
  std::string name;
  std::string summary;
  std::string paper;
  std::vector<Option> options;
  /// Throws UsageError with the reason when it cannot be put around that method.
  std::function<Method(const Method&, const Options&)> apply;
};

struct Registry {
  std::vector<Preset> presets;
  std::vector<Wrapper> wrappers;
};

/// The methods that come with winnow, in the order in which they are listed.
WINNOW_EXPORT const Registry& built_in();

/// The built-in methods and the ones that were added.
WINNOW_EXPORT std::shared_ptr<const Registry> registered();

/// The calibrations of all registered methods, each name once: `winnow calibrate` finds them out.
WINNOW_EXPORT std::vector<CalibrationPart> registered_calibrations();

/// Adds a method for the whole process: from now on Spec::parse, list_methods and Session::load know it. May be called
/// by any thread. Throws UsageError when the name is taken, or not made of a to z, 0 to 9 and `-`.
WINNOW_EXPORT void add_method(Preset preset);

/// The preset with the option `positions`, which every method has that evicts and does not choose effective positions
/// itself.
WINNOW_EXPORT Preset with_positions(Preset preset);

}  // namespace winnow::policy
