// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ostream>
#include <string>

#include "support/tiny_gguf.h"

namespace winnow::test {

/// Parameter of tests that run on several models.
struct NamedModel {
  std::string name;  ///< letters, digits and _, as in test names
  TinyModel model;
};

inline void PrintTo(const NamedModel& c, std::ostream* out) { *out << c.name; }

}  // namespace winnow::test
