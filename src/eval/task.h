// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "eval/measures/measure.h"
#include "eval/method.h"
#include "eval/sample.h"

namespace winnow::eval {

/// The baseline of a task's measurement.
enum class Against : std::uint8_t {
  references,  ///< the sample's
  full,        ///< the full f16 cache of the whole prompt, which is read with them and comes first
};

/// Whether the methods of a sample are measured together.
enum class Sharing : std::uint8_t {
  together,  ///< the prompt is read once for all
  alone,     ///< each in its own group, so that timings and peak are its own
};

/// A benchmark: its samples and how one is measured.
struct Task {
  std::vector<Sample> samples;
  std::variant<Measure, WholeMeasure> measure;
  Against against = Against::references;
  Sharing sharing = Sharing::together;
  /// The reason why a method cannot be measured, in one sentence; empty if it can. Not set: all methods can.
  std::function<std::string(const Method&)> refusal = {};
};

}  // namespace winnow::eval
