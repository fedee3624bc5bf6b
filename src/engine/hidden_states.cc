// SPDX-License-Identifier: Apache-2.0
#include "engine/hidden_states.h"

#include <algorithm>

#include "base/as_size.h"

namespace winnow::engine {

namespace {

constexpr int kFewRows = 64;  // as many as a block of a stored text

}  // namespace

/// The last of several chunks has no few rows, because ggml's kernels for few rows give other bits than those for many:
/// a text that begins with stored blocks could not have the same chunks.
std::vector<RowRange> chunks_of(int rows, int most) {
  std::vector<RowRange> out;
  for (int first = 0; first < rows; first += most) out.push_back({first, std::min(most, rows - first)});
  if (out.size() < 2 || out.back().count >= kFewRows || most < 2 * kFewRows) return out;
  out[out.size() - 2].count -= kFewRows;
  out.back() = {out.back().first - kFewRows, out.back().count + kFewRows};
  return out;
}

HiddenStates::HiddenStates(network::Executor& executor, const model::Hparams& hparams, MemoryAccount& account,
                           std::span<const Token> tokens, const char* purpose)
    : executor_(executor),
      hparams_(hparams),
      account_(account),
      states_(executor.states(static_cast<int>(tokens.size()), purpose)),
      rows_(static_cast<int>(tokens.size())) {
  if (hparams.n_embd_layer > 0) tokens_.assign(tokens.begin(), tokens.end());
  executor_.embed(tokens, states_);
}

void HiddenStates::run_layer(const network::Pass& pass, int layer, int first, std::span<const std::int32_t> positions,
                             TeamAttention& attention, network::Until until) {
  const bool later = executor_.packs_experts(pass, layer);
  if (later && !later_) later_.emplace(account_, hparams_, rows_);
  if (later) later_->begin_chunk(first);
  network::LayerRun run{.later = later ? &*later_ : nullptr, .until = later ? network::Until::output : until};
  if (!tokens_.empty()) run.tokens = std::span(tokens_).subspan(first, positions.size());
  executor_.run_layer(pass, layer, states_, first, positions, attention, run);
  attention.rethrow();
}

bool HiddenStates::advance_layer(const network::Pass& pass, int layer) {
  return executor_.packs_experts(pass, layer) && executor_.add_experts(pass, layer, *later_, states_);
}

void HiddenStates::keep(std::span<const int> rows) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const int to = static_cast<int>(i);
    states_.copy(to, states_, rows[i]);
    if (!tokens_.empty()) tokens_[i] = tokens_[rows[i]];
  }
  rows_ = static_cast<int>(rows.size());
  later_.reset();
}

std::vector<float> HiddenStates::logits(int of) {
  std::vector<float> out(as_size(hparams_.n_vocab));
  logits({of, 1}, out);
  return out;
}

void HiddenStates::logits(RowRange of, std::span<float> out) {
  executor_.logits(states_, of.first, of.count, out.data());
}

void HiddenStates::last_states(RowRange of, std::span<float> out) {
  executor_.last_states(states_, of.first, of.count, out.data());
}

}  // namespace winnow::engine
