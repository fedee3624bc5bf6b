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

/// A value by its name. Neither direction is better for a value that is not known.
Quantity quantity_of(const std::string& value);

/// The quantities of a column's records, the score first. Without those that repeat another one (nll, and nll@N, which
/// a chart shows), and without a share of the full cache's score where neither direction of it is better.
std::vector<Quantity> quantities_of(const Table& table, const Column& column);

/// The value in its unit. REQUIRES: the cell has samples, and the value.
double figure(const Cell& cell, const Quantity& quantity);
/// Whether figure() may be called.
bool has(const Cell* cell, const Quantity& quantity);

/// Whether a cell has all samples that some method has in its column. Bytes held are told of such cells alone: a mean
/// over fewer, longer prompts would look as if the method held more.
bool has_all_samples(const Table& table, const Column& column, const Cell* cell);

/// What a method holds, the mean over all columns. Empty where it lacks samples in one.
std::string mib_held(const Table& table, const MethodKey& method);

/// The best figure among the methods with this budget; nothing without a budget, or where no direction is better.
std::optional<double> best_of(const Table& table, const Column& column, const Quantity& quantity,
                              const std::string& budget);

}  // namespace winnow::eval
