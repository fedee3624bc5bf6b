// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "eval/summary.h"

namespace winnow::eval {

enum class Better : std::uint8_t { higher, lower, unknown };

enum class Scale : std::uint8_t { linear, logarithmic };

/// A number in records: the score, or one of the values.
struct Quantity {
  std::string name;   ///< empty: the score
  std::string title;  ///< including its unit
  Better better = Better::unknown;
  Scale scale = Scale::linear;
  int digits = 3;   ///< after the point
  double unit = 1;  ///< in which it is shown
};

/// The quantity of a value's name; Better::unknown for an unknown value.
Quantity quantity_of(const std::string& value);

/// The score of a task whose records have values with these names.
Quantity score_of(const std::set<std::string>& values);

/// Quantities of a column's records, the score first. Leaves out `nll` (shown as perplexity), parts of an answer
/// (`X@N`, which charts show), and the share of the full cache's score if neither a higher nor a lower score is better.
std::vector<Quantity> quantities_of(const Table& table, const Column& column);

/// The value in its unit. REQUIRES: has().
double figure(const Cell& cell, const Quantity& quantity);
/// Whether figure() may be called.
bool has(const Cell* cell, const Quantity& quantity);

/// True if a cell has as many samples as any method in its column. Only such cells report bytes held: a mean over
/// fewer, longer prompts would make the method look larger.
bool has_all_samples(const Table& table, const Column& column, const Cell* cell);

/// MiB that a method holds, the mean over all columns. "" if it lacks samples in one.
std::string mib_held(const Table& table, const MethodKey& method);

/// The best figure among the methods with this budget; empty without a budget, or for Better::unknown.
std::optional<double> best_of(const Table& table, const Column& column, const Quantity& quantity,
                              const std::string& budget);

}  // namespace winnow::eval
