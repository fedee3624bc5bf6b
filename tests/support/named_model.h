// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ostream>
#include <string>

#include "support/tiny_gguf.h"

namespace winnow::test {

/// A parameter of tests that go over several models.
struct NamedModel {
  std::string name;  ///< letters, digits and _, as tests are named
  TinyModel model;
};

inline void PrintTo(const NamedModel& c, std::ostream* out) { *out << c.name; }

}  // namespace winnow::test
