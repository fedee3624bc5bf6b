// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "eval/report/chart.h"

namespace winnow::eval {

/// Charts of each column's quantities against bytes held and against the budget. A benchmark with categories has only
/// curves of its mean.
std::vector<Chart> curves_of(const Summary& summary);

/// Maps of one method and kind of samples, by ascending budget.
struct HeatMaps {
  std::string title;
  std::vector<HeatMap> maps;
};

/// Maps of one protocol's records with the labels "length" and "depth", for each task, kind and method.
std::vector<HeatMaps> heat_maps_of(const std::vector<Record>& records, const std::string& protocol);

/// Results of the task `efficiency` with one protocol, against the label "depth" or "length", or else the prompt's
/// tokens.
std::vector<Chart> speed_of(const std::vector<Record>& records, const std::string& protocol);

/// Perplexity against the tokens after the prompt: the values nll@N, each a mean over the tokens before the Nth.
std::vector<Chart> perplexity_of(const std::vector<Record>& records, const std::string& protocol);

/// Distance to the full cache against the answer's tokens: the values kl@N.
std::vector<Chart> divergence_of(const std::vector<Record>& records, const std::string& protocol);

/// Positions that each method keeps: the series "parts".
std::vector<Chart> kept_places_of(const std::vector<Record>& records, const std::string& protocol);

}  // namespace winnow::eval
