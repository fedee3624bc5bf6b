// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "eval/report/tradeoff.h"

namespace winnow::eval {

/// Points of one method and KV type, by ascending cost.
struct PlotSeries {
  MethodKey method;         ///< without a budget
  std::string colour;       ///< kInk for the full cache, kGrid for methods without a colour of their own
  std::size_t kv_type = 0;  ///< index into PlotContents::kv_types
  std::vector<const Tradeoff::Point*> points;

  bool has_own_colour() const;
};

/// The visible part of a trade-off: a logarithmic axis has no 0.
struct PlotContents {
  std::vector<PlotSeries> series;
  std::vector<std::string> specs;  ///< but for the full cache's; the first Chart::kColoured have colours
  std::vector<std::string> kv_types;
  bool has_level = false;  ///< the full cache's quality is visible
};

/// Throws InputError if nothing is visible. The points belong to the trade-off.
PlotContents contents_of(const Tradeoff& tradeoff);

/// gnuplot's numbers of the dashes and the mark of a KV type.
int dash_of(std::size_t kv_type);
int mark_of(std::size_t kv_type);

}  // namespace winnow::eval
