// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <vector>

#include "my_methods.h"

using namespace winnow::policy;

namespace {

Scores squared_lengths(const LayerView& layer, const AlwaysKept& /*always_kept*/) {
  Scores scores(layer.shape.kv_heads, layer.tokens());
  std::vector<float> value(layer.shape.head_dim);
  for (int head = 0; head < layer.shape.kv_heads; ++head) {
    for (int token = 0; token < layer.tokens(); ++token) {
      layer.value(head, token, value);
      for (const float x : value) scores.head(head)[token] += x * x;
    }
  }
  return scores;
}

}  // namespace

Preset value_norm() {
  Preset preset;
  preset.name = "value-norm";
  preset.summary = "keeps the entries with the longest values";
  preset.paper = "an example";
  preset.options = {{"recent", Option::Integer{1, 1, 65536}, "last tokens that are always kept"}};
  preset.build = [](const Options& options) {
    const AlwaysKept last{0, options.integer("recent")};
    Method method;
    method.selection.always_kept = {"the last tokens", [last](const LayerPrompt&, int) { return last; }};
    method.selection.least = {"the last tokens", [last](const LayerPrompt&) { return last.recent; }};
    method.selection.score = {"squared length of the value", squared_lengths};
    method.schedule = Schedule::once;
    return method;
  };
  return preset;
}
