// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "eval/attention/observed.h"

namespace winnow::eval {

/// The score of EMS (equation 2) for each token of a prompt in one KV head, not pooled: the larger of what all queries
/// and what the last 32 give to it, the former brought to the latter's sum. Query heads of a group are averaged.
class GlobalLocal {
 public:
  /// Where a token's score comes from. The window is the last 32 tokens, which are kept whatever their score.
  enum class Source : std::uint8_t { window, local, global };

  GlobalLocal(const ObservedLayer& layer, const HeadAttention& attention, int kv_head);

  int tokens() const { return static_cast<int>(local_.size()); }
  Source source(int token) const;
  /// [N]
  std::vector<double> scores() const;

 private:
  std::vector<double> global_;
  std::vector<double> local_;
};

}  // namespace winnow::eval
