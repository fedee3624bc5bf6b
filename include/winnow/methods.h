// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "winnow/export.h"

namespace winnow {

/// One option of a method, as `winnow methods NAME` lists it.
struct OptionInfo {
  std::string name;
  std::string value;  ///< the default
  std::string range;  ///< `1 to 65536`, `max|mean`
  std::string effect;
};

/// A part of the composition: its place (`score`, `select`, …) and its description.
struct PartInfo {
  std::string place;
  std::string text;
};

struct MethodInfo {
  std::string name;
  std::string summary;
  std::string paper;
  std::vector<PartInfo> parts;  ///< with the default options
  std::vector<OptionInfo> options;
};

/// All presets, in the registry's order.
WINNOW_EXPORT std::vector<MethodInfo> list_methods();

/// All wrappers, such as `ada` for ada(X), in the registry's order. They have no parts of their own.
WINNOW_EXPORT std::vector<MethodInfo> list_wrappers();

/// The parts of any spec, with the spec's options. Throws UsageError as Spec::parse does.
WINNOW_EXPORT MethodInfo describe_method(std::string_view spec);

}  // namespace winnow
