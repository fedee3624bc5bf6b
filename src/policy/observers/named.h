// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "winnow/policy/method.h"
#include "winnow/policy/options.h"

/// Observers that are asked for by name and show arrays of numbers, for methods in other languages.
namespace winnow::policy {

/// Numbers that an observer shows of a layer, row by row.
struct SeenArray {
  std::string name;  ///< among those of its observer; empty where it is the only one
  std::vector<std::size_t> shape;
  std::vector<float> numbers;
};
using SeenArrays = std::function<std::vector<SeenArray>(const LayerView&)>;

struct NamedObserver {
  std::string name;
  std::vector<Option> options;
  /// Adds it to what a method's ranking parts look at.
  std::function<SeenArrays(Method&, const Options&)> add;
};

/// All of them.
const std::vector<NamedObserver>& named_observers();

/// The name of an observer that has been added, and what it shows.
struct AddedObserver {
  std::string name;
  SeenArrays arrays;
};
/// Adds the observer of a spec, such as `query_moments:first=4`. Throws UsageError for what is none.
AddedObserver add_named(Method& method, std::string_view spec);

}  // namespace winnow::policy
