// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "winnow/policy/method.h"
#include "winnow/policy/options.h"

/// Observers that are requested by name and return arrays, for methods in other languages.
namespace winnow::policy {

/// An array that an observer returns for a layer, row by row.
struct ResultArray {
  std::string name;  ///< among the arrays of its observer; empty if it is the only one
  std::vector<std::size_t> shape;
  std::vector<float> numbers;
};
using ResultArrays = std::function<std::vector<ResultArray>(const LayerView&)>;

struct NamedObserver {
  std::string name;
  std::vector<Option> options;
  /// Adds the observer for a method's ranking parts.
  std::function<ResultArrays(Method&, const Options&)> add;
};

/// All named observers.
const std::vector<NamedObserver>& named_observers();

/// Name of an added observer, and its arrays.
struct AddedObserver {
  std::string name;
  ResultArrays arrays;
};
/// Adds the observer of a spec such as `query_moments:first=4`. Throws UsageError for an invalid one.
AddedObserver add_named(Method& method, std::string_view spec);

}  // namespace winnow::policy
