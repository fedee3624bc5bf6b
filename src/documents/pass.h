// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <span>
#include <vector>

#include "cache/scratch.h"
#include "engine/session_impl.h"
#include "network/attention_op.h"

namespace winnow::documents {

/// Attention of some rows over a scratch that holds what others left in it: the keys and values of some rows go there
/// first.
class RowAttention : public network::AttentionOp {
 public:
  using Begin = std::function<void(const Tensors&)>;
  using Look = std::function<void(const Tensors&, Worker)>;

  /// `begin` tells `attention` what is seen; `look`, if any, is called by the whole team when the layer's attention is
  /// complete. `store` [rows] says which row of the scratch gets each row's keys and values; negative: none.
  RowAttention(attention::PrefillAttention& attention, cache::LayerScratch& scratch,
               std::span<const std::int32_t> store, Begin begin, Look look = {})
      : attention_(attention), scratch_(scratch), store_(store), begin_(std::move(begin)), look_(std::move(look)) {}

  void stage(int number, const Tensors& tensors, Worker worker) noexcept override;
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  attention::PrefillAttention& attention_;
  cache::LayerScratch& scratch_;
  std::span<const std::int32_t> store_;
  Begin begin_;
  Look look_;
  std::exception_ptr error_;
};

/// What the rows of a pass do in one layer.
struct RowPlan {
  std::vector<std::int32_t> store;    ///< row of the scratch for its keys and values; negative: none
  std::vector<std::int32_t> leading;  ///< rows of the scratch that it sees, ascending
  std::vector<std::int32_t> own;      ///< one more; negative: none
};

/// Chosen tokens on their way through the layers. Between layers some may leave.
class Pass {
 public:
  /// Joint positions, ascending. Throws MemoryError.
  Pass(Session::Impl& session, std::span<const Token> tokens, std::span<const std::int32_t> positions);

  int rows() const { return static_cast<int>(positions_.size()); }
  std::span<const std::int32_t> positions() const { return positions_; }

  /// The layer's keys and values of some rows, [n][H_kv][d] each.
  struct KeysAndValues {
    std::vector<float> keys;
    std::vector<float> values;
  };
  KeysAndValues project(int layer, std::span<const int> rows);
  /// All rows pass through a layer. Adds their rotated queries to `query_sum` [H_q][d] unless it is empty.
  void run(int layer, cache::LayerScratch& scratch, const RowPlan& plan, std::span<double> query_sum = {});
  /// Only these rows, ascending, go on.
  void keep(std::span<const int> rows);
  /// Logits of the last row after the last layer.
  std::vector<float> logits();

 private:
  float* hidden(int row) {
    return hidden_.as<float>().data() + static_cast<std::ptrdiff_t>(row) * session_.hparams.n_embd;
  }

  Session::Impl& session_;
  std::vector<std::int32_t> positions_;
  Buffer hidden_;  ///< [rows][n_embd]
  Session::Impl::PackedPass packed_;
};

}  // namespace winnow::documents
