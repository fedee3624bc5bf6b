// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "support/changed_gguf.h"
#include "support/tiny_gguf.h"

namespace winnow::test {

/// A mistake that a program could make with an architecture, as two files: one computes with `right` what the mistake
/// would make of it with `wrong`. Weights are the same, or what the mistake would read in their place.
struct PlantedError {
  std::string name;
  TinyModel right;
  TinyModel wrong;                 ///< the same tensors in the same order
  GgufChanges changes;             ///< of the wrong file
  GgufChanges right_changes = {};  ///< of the right one
};

inline void PrintTo(const PlantedError& error, std::ostream* out) { *out << error.name; }

/// Each as one test's name says it.
std::vector<PlantedError> planted_errors();

}  // namespace winnow::test
