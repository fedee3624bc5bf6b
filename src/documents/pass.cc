// SPDX-License-Identifier: Apache-2.0
#include "documents/pass.h"

#include <algorithm>
#include <cstring>

#include "base/as_size.h"
#include "engine/layers.h"
#include "engine/prefill.h"

namespace winnow::documents {

namespace {

void add_queries(const network::AttentionOp::Tensors& tensors, std::span<double> sum, Worker worker) {
  for (std::size_t i = as_size(worker.index); i < sum.size(); i += as_size(worker.count)) {
    for (int row = 0; row < tensors.rows; ++row)
      sum[i] += static_cast<double>(tensors.q[as_size(row) * sum.size() + i]);
  }
}

}  // namespace

void RowAttention::stage(int number, const Tensors& tensors, Worker worker) noexcept {
  if (number == 0) {
    const auto width = static_cast<std::ptrdiff_t>(scratch_.kv_heads()) * scratch_.head_dim();
    for (int row = worker.index; row < tensors.rows; row += worker.count) {
      if (store_[row] >= 0) scratch_.store(store_[row], tensors.k + row * width, tensors.v + row * width);
    }
    if (worker.index != 0) return;
    try {
      begin_(tensors);
    } catch (...) {
      error_ = std::current_exception();  // the other threads are past this stage's barrier before they look
    }
    return;
  }
  if (error_) return;
  if (number == 1) attention_.run(worker);
  if (number == 2) attention_.reduce(worker);
  if (number == 3 && look_) look_(tensors, worker);
}

Pass::Pass(Session::Impl& session, std::span<const Token> tokens, std::span<const std::int32_t> positions)
    : session_(session),
      positions_(positions.begin(), positions.end()),
      hidden_(session.account, engine::hidden_bytes(session.hparams, tokens.size()),
              "the hidden states of chosen tokens"),
      packed_(session, tokens.size(), 0) {
  session.executor.embed(tokens, hidden_.as<float>().data());
}

Pass::KeysAndValues Pass::project(int layer, std::span<const int> rows) {
  const auto& h = session_.hparams;
  const auto& spec = h.layer(layer);
  const auto width = as_size(spec.n_head_kv) * as_size(spec.head_dim);
  KeysAndValues out{std::vector<float>(rows.size() * width), std::vector<float>(rows.size() * width)};
  const auto most = std::min(rows.size(), as_size(session_.options.chunk));
  Buffer some(session_.account, engine::hidden_bytes(h, most), "the hidden states of a chunk");
  for (std::size_t done = 0; done < rows.size(); done += most) {
    const auto chunk = rows.subspan(done, std::min(most, rows.size() - done));
    std::vector<std::int32_t> positions;
    for (std::size_t i = 0; i < chunk.size(); ++i) {
      std::memcpy(some.data() + engine::hidden_bytes(h, i), hidden(chunk[i]), engine::hidden_bytes(h, 1));
      positions.push_back(positions_[chunk[i]]);
    }
    session_.executor.keys_and_values(layer, some.as<float>().data(), positions, out.keys.data() + done * width,
                                      out.values.data() + done * width);
  }
  return out;
}

void Pass::run(int layer, cache::LayerScratch& scratch, const RowPlan& plan, std::span<double> query_sum) {
  const auto shape = engine::shape_of(session_.hparams.layer(layer));
  for (int done = 0; done < rows(); done += session_.options.chunk) {
    const auto first = as_size(done);
    const auto n = as_size(std::min(session_.options.chunk, rows() - done));
    const attention::VisibleRange visible{std::span(plan.leading).subspan(first, n),
                                          std::span(plan.own).subspan(first, n)};
    RowAttention op(
        session_.prefill_attention, scratch, std::span(plan.store).subspan(first, n),
        [&](const auto& tensors) { session_.prefill_attention.begin(shape, scratch, tensors.q, tensors.out, visible); },
        [&](const auto& tensors, Worker worker) { add_queries(tensors, query_sum, worker); });
    session_.executor.run_layer(layer, hidden(done), std::span(positions_).subspan(first, n), op);
    op.rethrow();
  }
}

void Pass::keep(std::span<const int> rows) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    positions_[i] = positions_[rows[i]];
    if (static_cast<int>(i) != rows[i])
      std::memcpy(hidden(static_cast<int>(i)), hidden(rows[i]), engine::hidden_bytes(session_.hparams, 1));
  }
  positions_.resize(rows.size());
}

std::vector<float> Pass::logits() {
  std::vector<float> out(as_size(session_.hparams.n_vocab));
  session_.executor.logits(hidden(rows() - 1), 1, out.data());
  return out;
}

}  // namespace winnow::documents
