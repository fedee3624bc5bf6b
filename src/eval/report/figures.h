// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "eval/report/chart.h"

namespace winnow::eval {

/// Each column's quantities against the bytes held and against the budget. A benchmark with categories has only curves
/// of its mean.
std::vector<Chart> curves_of(const Summary& summary);

/// The maps of one method and kind of samples, by ascending budget.
struct HeatMaps {
  std::string title;
  std::vector<HeatMap> maps;
};

/// Maps of one protocol's records with the labels "length" and "depth", for each task, kind and method.
std::vector<HeatMaps> heat_maps_of(const std::vector<Record>& records, const std::string& protocol);

/// What the task `efficiency` measured with one protocol, against the label "depth" or "length", or else the prompt's
/// tokens.
std::vector<Chart> speed_of(const std::vector<Record>& records, const std::string& protocol);

/// Perplexity against the tokens after the prompt: of the values nll@N, means over the tokens before the Nth.
std::vector<Chart> perplexity_of(const std::vector<Record>& records, const std::string& protocol);

/// Distance to the full cache against the tokens of the answer: the values kl@N, likewise.
std::vector<Chart> divergence_of(const std::vector<Record>& records, const std::string& protocol);

/// Where in the prompt the entries stand that each method keeps: the series "parts".
std::vector<Chart> kept_places_of(const std::vector<Record>& records, const std::string& protocol);

}  // namespace winnow::eval
