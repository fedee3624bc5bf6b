// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "eval/summary.h"

namespace winnow::eval {

enum class Better : std::uint8_t { higher, lower, unknown };

enum class Scale : std::uint8_t { linear, logarithmic };

/// A figure that records have: the score, or one of their values.
struct Quantity {
  std::string name;   ///< of the value; empty: the score
  std::string title;  ///< with its unit
  Better better = Better::unknown;
  Scale scale = Scale::linear;
  int digits = 3;   ///< after the point
  double unit = 1;  ///< in which it is shown
};

/// A value by its name. Of one that is not known nothing is better.
Quantity quantity_of(const std::string& value);

/// What the records of a column have, the score first. Left out: what is another one's logarithm or a point of a course
/// (nll, nll@1000).
std::vector<Quantity> quantities_of(const Table& table, const Column& column);

/// In its unit. REQUIRES: the cell has samples, and the value.
double figure(const Cell& cell, const Quantity& quantity);
/// Whether it can be asked for.
bool has(const Cell* cell, const Quantity& quantity);

/// Among the methods with this budget; nothing where there is no budget, or none is better than another.
std::optional<double> best_of(const Table& table, const Column& column, const Quantity& quantity,
                              const std::string& budget);

}  // namespace winnow::eval
