// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "eval/report/chart.h"

namespace winnow::eval {

/// Each column's quantities against the bytes held and against the budget; of a benchmark with categories its mean
/// alone.
std::vector<Chart> curves_of(const Summary& summary);

/// The maps of one kind of samples: a method's, from the smallest budget on.
struct HeatMaps {
  std::string title;
  std::vector<HeatMap> maps;
};

/// Of the records with the labels "length" and "depth" of one protocol: for each task, kind and method.
std::vector<HeatMaps> heat_maps_of(const std::vector<Record>& records, const std::string& protocol);

/// What the task `efficiency` measured of one protocol, against the label "depth", "length" or the prompt's tokens:
/// what there is.
std::vector<Chart> speed_of(const std::vector<Record>& records, const std::string& protocol);

/// Perplexity against the tokens after the prompt: of the values nll@N, means over the tokens before the Nth.
std::vector<Chart> perplexity_of(const std::vector<Record>& records, const std::string& protocol);

}  // namespace winnow::eval
