// SPDX-License-Identifier: Apache-2.0
#include "documents/chosen_tokens.h"

#include "base/as_size.h"
#include "engine/layers.h"
#include "engine/team_attention.h"

namespace winnow::documents {

namespace {

/// Attention of some rows over a scratch with stored entries.
class RowAttention : public engine::TeamAttention {
 public:
  /// `store` [rows]: row of the scratch for each row's keys and values; negative: none. Adds all rows' queries to
  /// `query_sum` [H_q][d] unless it is empty.
  RowAttention(attention::PrefillAttention& attention, const attention::Shape& shape, cache::LayerScratch& scratch,
               std::span<const std::int32_t> store, const attention::VisibleRange& visible, std::span<double> query_sum)
      : attention_(attention),
        shape_(shape),
        scratch_(scratch),
        store_(store),
        visible_(visible),
        query_sum_(query_sum) {}

 private:
  void store(const Tensors& tensors, Worker worker) override {
    const auto width = static_cast<std::ptrdiff_t>(scratch_.kv_heads()) * scratch_.head_dim();
    for (int row = worker.index; row < tensors.rows; row += worker.count) {
      if (store_[row] >= 0) scratch_.store(store_[row], tensors.k + row * width, tensors.v + row * width);
    }
  }

  void begin(const Tensors& tensors) override { attention_.begin(shape_, scratch_, tensors.q, tensors.out, visible_); }
  void attend(const Tensors& /*tensors*/, Worker worker) override { attention_.run(worker); }
  void reduce(Worker worker) override { attention_.reduce(worker); }

  void finish(const Tensors& tensors, Worker worker) override {
    for (std::size_t i = as_size(worker.index); i < query_sum_.size(); i += as_size(worker.count)) {
      for (int row = 0; row < tensors.rows; ++row)
        query_sum_[i] += static_cast<double>(tensors.q[as_size(row) * query_sum_.size() + i]);
    }
  }

  attention::PrefillAttention& attention_;
  attention::Shape shape_;
  cache::LayerScratch& scratch_;
  std::span<const std::int32_t> store_;
  attention::VisibleRange visible_;
  std::span<double> query_sum_;
};

}  // namespace

ChosenTokens::ChosenTokens(Session::Impl& session, std::span<const Token> tokens,
                           std::span<const std::int32_t> positions)
    : session_(session),
      positions_(positions.begin(), positions.end()),
      hidden_(session.executor, session.hparams, session.account, tokens, "the hidden states of chosen tokens"),
      packed_(session.begin_pass(tokens.size(), 0)) {}

ChosenTokens::KeysAndValues ChosenTokens::project(int layer, std::span<const int> rows) {
  const auto& h = session_.hparams;
  const auto& spec = h.layer(layer);
  const auto width = as_size(spec.n_head_kv) * as_size(spec.head_dim);
  KeysAndValues out{std::vector<float>(rows.size() * width), std::vector<float>(rows.size() * width)};
  const auto chunks = engine::chunks_of(static_cast<int>(rows.size()), session_.options.chunk);
  auto some = session_.executor.states(chunks.front().count, "the hidden states of a chunk");
  for (const auto& [first, count] : chunks) {
    std::vector<std::int32_t> positions;
    for (int i = 0; i < count; ++i) {
      const int row = rows[first + i];
      some.copy(i, hidden_.states(), row);
      positions.push_back(positions_[row]);
    }
    const auto at = as_size(first) * width;
    session_.executor.keys_and_values(packed_, layer, some, positions, out.keys.data() + at, out.values.data() + at);
  }
  return out;
}

void ChosenTokens::run(int layer, cache::LayerScratch& scratch, const RowPlan& plan, std::span<double> query_sum) {
  const auto shape = engine::shape_of(session_.hparams, layer);
  for (const auto& chunk : engine::chunks_of(rows(), session_.options.chunk)) {
    const auto of_chunk = [&](const std::vector<std::int32_t>& all) {
      return std::span(all).subspan(as_size(chunk.first), as_size(chunk.count));
    };
    RowAttention attention(*session_.prefill_attention, shape, scratch, of_chunk(plan.store),
                           {of_chunk(plan.leading), of_chunk(plan.own)}, query_sum);
    hidden_.run_layer(packed_, layer, chunk.first, of_chunk(positions_), attention);
  }
  while (hidden_.advance_layer(packed_, layer)) continue;
}

void ChosenTokens::keep(std::span<const int> rows) {
  for (std::size_t i = 0; i < rows.size(); ++i) positions_[i] = positions_[rows[i]];
  positions_.resize(rows.size());
  hidden_.keep(rows);
}

std::vector<float> ChosenTokens::logits() { return hidden_.logits(rows() - 1); }

}  // namespace winnow::documents
