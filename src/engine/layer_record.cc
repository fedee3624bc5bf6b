// SPDX-License-Identifier: Apache-2.0
#include "engine/layer_record.h"

#include <algorithm>

#include "base/as_size.h"
#include "base/worker.h"
#include "engine/layers.h"

namespace winnow::engine {

namespace {

using attention::QueryRowSet;
using attention::Reduction;

std::size_t query_bytes(const model::Hparams& hparams, int tokens) {
  std::size_t most = 0;
  for (const auto& kind : hparams.kinds) most = std::max(most, as_size(kind.n_head) * as_size(kind.head_dim));
  return as_size(tokens) * most * sizeof(float);
}

}  // namespace

LayerRecord::LayerRecord(const model::Hparams& hparams, MemoryAccount& account, int tokens)
    : queries_(account, query_bytes(hparams, tokens), "one layer's queries"),
      logsums_(as_size(tokens) * as_size(most_heads(hparams).query)),
      sums_({{QueryRowSet::Kind::all, 0, {}}, Reduction::sum}, 0, tokens),
      diagonal_({{QueryRowSet::Kind::band, 0, {}}, Reduction::sum}, 0, tokens) {}

std::size_t LayerRecord::bytes(const model::Hparams& hparams, int tokens) {
  return query_bytes(hparams, tokens) + 3 * as_size(tokens) * as_size(most_heads(hparams).query) * sizeof(float);
}

void LayerRecord::begin_layer(const policy::ObservedLayer& layer) {
  width_ = as_size(layer.shape.query_heads) * as_size(layer.shape.head_dim);
  sums_.begin_layer(layer.shape.query_heads);
  diagonal_.begin_layer(layer.shape.query_heads);
}

void LayerRecord::see_rows(const policy::LayerRows& rows, Worker worker) {
  float* const to = queries_.as<float>().data() + as_size(rows.first) * width_;
  for (int i = worker.index; i < rows.count; i += worker.count)
    std::copy_n(rows.queries + as_size(i) * width_, width_, to + as_size(i) * width_);
}

}  // namespace winnow::engine
