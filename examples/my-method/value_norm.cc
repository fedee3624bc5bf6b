// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <vector>

#include "my_methods.h"

using namespace winnow::policy;

namespace {

Scores squared_lengths(const LayerView& layer, const Forced& /*forced*/) {
  Scores scores(layer.shape.kv_heads, layer.tokens());
  std::vector<float> value(static_cast<std::size_t>(layer.shape.head_dim));
  for (int head = 0; head < layer.shape.kv_heads; ++head) {
    for (int token = 0; token < layer.tokens(); ++token) {
      layer.value(head, token, value);
      for (const float x : value) scores.head(head)[static_cast<std::size_t>(token)] += x * x;
    }
  }
  return scores;
}

}  // namespace

Preset value_norm() {
  Preset preset;
  preset.name = "value-norm";
  preset.summary = "the entries with the longest values";
  preset.paper = "an example";
  preset.options = {{"recent", Option::Integer{1, 1, 65536}, "last tokens that always stay"}};
  preset.build = [](const Options& options) {
    const int recent = options.integer("recent");
    Method method;
    method.forced = {"the last tokens", [recent](const Prompt&, int) { return Forced{0, recent}; }};
    method.least = {"the last tokens", [recent](const Prompt&) { return recent; }};
    method.score = {"squared length of the value", squared_lengths};
    method.schedule = Schedule::once;
    return method;
  };
  return preset;
}
