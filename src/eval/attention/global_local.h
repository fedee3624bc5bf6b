// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "eval/attention/observed.h"

namespace winnow::eval {

/// EMS's score (equation 2) of each token of a prompt in one KV head, without pooling: the larger of the attention from
/// all queries and from the last 32, the former scaled to the latter's sum. Averaged over the query heads of a group.
class GlobalLocal {
 public:
  /// The origin of a token's score. The window is the last 32 tokens, which are kept whatever their score.
  enum class Source : std::uint8_t { window, local, global };

  GlobalLocal(const LayerAttention& layer, const HeadAttention& attention, int kv_head);

  int tokens() const { return static_cast<int>(local_.size()); }
  Source source(int token) const;
  /// [N]
  std::vector<double> scores() const;

 private:
  std::vector<double> global_;
  std::vector<double> local_;
};

}  // namespace winnow::eval
