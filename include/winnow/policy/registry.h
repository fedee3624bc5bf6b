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

/// A published method under its name, with its options and the function that composes its parts.
struct Preset {
  std::string name;
  std::string summary;
  std::string paper;
  std::vector<Option> options;
  std::function<Method(const Options&)> build;
};

/// `name(X)`: derives a method from another one by replacing parts.
struct Wrapper {
  std::string name;
  std::string summary;
  std::string paper;
  std::vector<Option> options;
  /// Throws UsageError with the reason if it cannot wrap the method.
  std::function<Method(const Method&, const Options&)> apply;
};

struct Registry {
  std::vector<Preset> presets;
  std::vector<Wrapper> wrappers;
};

/// The methods that come with winnow, in listing order.
WINNOW_EXPORT const Registry& built_in();

/// The built-in methods and those added by add_method().
WINNOW_EXPORT std::shared_ptr<const Registry> registered();

/// Calibrations of all registered methods, without duplicate names, for `winnow calibrate`.
WINNOW_EXPORT std::vector<CalibrationPart> registered_calibrations();

/// Adds a method for the whole process: Spec::parse, list_methods and Session::load know it from now on. Thread-safe.
/// Throws UsageError if the name is taken, or has other characters than a to z, 0 to 9 and `-`.
WINNOW_EXPORT void add_method(Preset preset);

/// Adds the option `positions` to a method that evicts and does not fix its effective positions. Others stay unchanged.
WINNOW_EXPORT Preset with_positions(Preset preset);

}  // namespace winnow::policy
