// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>
#include <span>
#include <vector>

#include "cache/lanes.h"
#include "winnow/policy/registry.h"

namespace winnow::test {

/// Entries of each KV head of each layer: heads are taken in pairs, of which one gets more than the mean and the other
/// as much less; no two pairs are alike.
inline std::vector<std::vector<int>> table_of(int budget, std::span<const policy::LayerPrompt> layers) {
  int heads = 0;
  for (const auto& layer : layers) heads += layer.kv_heads;
  std::vector<std::vector<int>> out;
  int k = 0;
  for (const auto& layer : layers) {
    auto& of_layer = out.emplace_back();
    for (int head = 0; head < layer.kv_heads; ++head, ++k) {
      const int more = k / 2 == heads / 2 ? 0 : 3 + k / 2;  // an odd one is left over
      of_layer.push_back(budget + (k % 2 == 0 ? more : -more));
    }
  }
  return out;
}

inline policy::Scores scores_by_token(const policy::LayerView& view, const policy::AlwaysKept& /*always_kept*/) {
  policy::Scores out(view.shape.kv_heads, view.tokens());
  for (int head = 0; head < out.heads(); ++head) {
    for (int j = 0; j < out.size(); ++j) out.head(head)[j] = static_cast<float>(j * 7919 % 101);
  }
  return out;
}

/// The oldest entry that is not one of the first two.
inline int oldest(cache::LayerLanes& lanes, int head, const policy::Terms& terms) {
  int slot = -1;
  for (int i = 0; i < lanes.length(head); ++i) {
    if (lanes.position(head, i) < terms.always_kept.sinks) continue;
    if (slot < 0 || lanes.position(head, i) < lanes.position(head, slot)) slot = i;
  }
  return slot;
}

/// A method whose heads have budgets of their own, known before anything has been read.
inline policy::Preset head_tables() {
  return {.name = "head-tables",
          .summary = "a budget for each head of each layer",
          .paper = "a test",
          .options = {{"when", policy::Option::Choice{"prefill", {"step", "prefill"}}, "when entries are evicted"}},
          .build = [](const policy::Options& options) {
            policy::Method method;
            auto& selection = method.selection;
            selection.always_kept = {"two and two", [](const policy::LayerPrompt&, int) {
                                       return policy::AlwaysKept{2, 2};
                                     }};
            selection.least = {"two and two", [](const policy::LayerPrompt&) { return 4; }};
            selection.score = {"by the token", scores_by_token};
            selection.over_all_heads = {"by a table", table_of};
            method.schedule = policy::Schedule::once;
            if (options.text("when") == "prefill") return method;
            method.schedule = policy::Schedule::step;
            method.decoding.evict = {"the oldest", oldest};
            return method;
          }};
}

}  // namespace winnow::test
