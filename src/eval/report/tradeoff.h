// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "eval/report/quantity.h"

namespace winnow::eval {

/// The cost of a cache that a plot sets against quality.
enum class Cost : std::uint8_t {
  bytes,  ///< MiB that the cache holds after prefill, the mean over samples
  time,   ///< time of reading the prompts in units of the full f16 cache's
};

/// The records and the quantities of a plot.
struct TradeoffChoice {
  Cost cost = Cost::bytes;
  std::string quality = "score";  ///< or the name of a value
  std::string task;               ///< a task or the first part of its name; empty: all tasks with this quality
  std::string protocol;           ///< as protocol_of() names it; may be empty if all records have the same
};

/// Quality and cost of methods with budgets, over the same samples for all.
struct Tradeoff {
  struct Point {
    MethodKey method;
    double cost = 0;
    Mean quality;  ///< in the quantity's unit; the mean of the tasks' means
  };

  Cost cost = Cost::bytes;
  Quantity quality;
  std::string tasks;
  std::size_t samples = 0;         ///< that all points have
  std::size_t left_out = 0;        ///< samples that some points lack
  std::vector<Point> points;       ///< in the order of the records
  std::optional<Mean> full_cache;  ///< quality of the full f16 cache, if there is one
};

/// Throws InputError if no record has this quality, if records of several models or protocols would be mixed, if no
/// sample was measured with all methods, and for Cost::time also if methods were not measured one by one, or not the
/// full f16 cache.
Tradeoff tradeoff_of(const std::vector<Record>& records, const TradeoffChoice& choice);

}  // namespace winnow::eval
