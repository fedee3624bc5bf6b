// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "policy/methods/presets.h"
#include "policy/rows.h"

namespace winnow::policy::methods {

namespace {

Scores short_keys_first(const LayerView& view, const AlwaysKept& /*always_kept*/) {
  Scores scores(view.shape.kv_heads, view.tokens());
  for (int head = 0; head < scores.heads(); ++head) {
    std::ranges::transform(view.key_norms(head), scores.head(head).begin(),
                           [](double length) { return -static_cast<float>(length); });
  }
  return scores;
}

}  // namespace

/// Norms of keys (Devoto et al., 2024, "A Simple and Effective L2 Norm-Based Strategy for KV Cache Compression",
/// section 3): short keys get attention. No options.
Preset knorm() {
  return {.name = "knorm",
          .summary = "keeps the entries with the shortest keys",
          .paper = "Devoto et al. 2024, A Simple and Effective L2 Norm-Based Strategy for KV Cache Compression",
          .options = {},
          .build = [](const Options&) {
            Method method;
            rank_by(method, "minus the key's length", 0, short_keys_first);
            method.selection.signed_scores = true;
            return method;
          }};
}

}  // namespace winnow::policy::methods
