// SPDX-License-Identifier: Apache-2.0
#include <winnow/policy/score.h>

#include <cmath>
#include <cstddef>
#include <vector>

#include "my_methods.h"

using namespace winnow::policy;

namespace {

float length(const std::vector<float>& row) {
  float sum = 0;
  for (const float x : row) sum += x * x;
  return std::sqrt(sum);
}

/// The attention of the observed queries, mean over the query heads that share a KV head, times the value's length.
Scores attention_times_length(const LayerView& layer, const winnow::attention::ColumnStatistics& attention) {
  Scores scores = reduce_group(attention, layer.shape, Reduce::mean);
  std::vector<float> value(layer.shape.head_dim);
  for (int head = 0; head < scores.heads(); ++head) {
    for (int token = 0; token < layer.tokens(); ++token) {
      layer.value(head, token, value);
      scores.head(head)[token] *= length(value);
    }
  }
  return scores;
}

}  // namespace

Preset attended_values() {
  Preset preset;
  preset.name = "attended-values";
  preset.summary = "keeps the entries that the last queries attend to, weighted by the length of the values";
  preset.paper = "an example";
  preset.options = {{"window", Option::Integer{16, 1, 65536}, "last queries that are observed, and always kept"}};
  preset.build = [](const Options& options) {
    const int window = options.integer("window");
    Method method;
    const auto attention = method.observers.add(observe_last(window), {.ranking = true});
    method.selection.always_kept = {"the window", [window](const LayerPrompt&, int) { return AlwaysKept{0, window}; }};
    method.selection.least = {"the window", [window](const LayerPrompt&) { return window; }};
    method.selection.score = {"attention of the window, times the value's length",
                              [attention](const LayerView& layer, const AlwaysKept&) {
                                return attention_times_length(layer, layer[attention]);
                              }};
    method.schedule = Schedule::once;
    return method;
  };
  return preset;
}
