// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "support/changed_gguf.h"
#include "support/tiny_gguf.h"

namespace winnow::test {

/// A mistake that a program could make with an architecture, as two files: a correct program computes from `wrong` what
/// a program with the mistake computes from `right`. Weights are the same, or those that the mistake would read
/// instead.
struct PlantedError {
  std::string name;
  TinyModel right;
  TinyModel wrong;                 ///< the same tensors in the same order
  GgufChanges changes;             ///< to the wrong file
  GgufChanges right_changes = {};  ///< to the right one
};

inline void PrintTo(const PlantedError& error, std::ostream* out) { *out << error.name; }

/// All mistakes, one test each.
std::vector<PlantedError> planted_errors();

}  // namespace winnow::test
