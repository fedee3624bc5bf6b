// SPDX-License-Identifier: Apache-2.0
#include "eval/attention/global_local.h"

#include <algorithm>
#include <numeric>

#include "eval/attention/masses.h"

namespace winnow::eval {

GlobalLocal::GlobalLocal(const LayerAttention& layer, const HeadAttention& attention, int kv_head)
    : global_(as_size(layer.tokens())), local_(as_size(layer.tokens())) {
  const int group = layer.view.shape.group();
  for (int g = 0; g < group; ++g) {
    const int head = kv_head * group + g;
    const auto all = layer.sums->head(head);
    const auto last = last_masses(attention, head, layer.tokens());
    for (std::size_t j = 0; j < local_.size(); ++j) {
      global_[j] += static_cast<double>(all[j]);
      local_[j] += last[j];
    }
  }
  const double global_sum = std::accumulate(global_.begin(), global_.end(), 0.0);
  const double local_sum = std::accumulate(local_.begin(), local_.end(), 0.0);
  for (double& x : global_) x *= global_sum > 0 ? local_sum / global_sum : 0;
}

GlobalLocal::Source GlobalLocal::source(int token) const {
  if (token >= tokens() - kLastQueries) return Source::window;
  return global_[as_size(token)] > local_[as_size(token)] ? Source::global : Source::local;
}

std::vector<double> GlobalLocal::scores() const {
  std::vector<double> out;
  for (std::size_t j = 0; j < local_.size(); ++j) out.push_back(std::max(global_[j], local_[j]));
  return out;
}

}  // namespace winnow::eval
