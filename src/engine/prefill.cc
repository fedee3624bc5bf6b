// SPDX-License-Identifier: Apache-2.0
#include "engine/prefill.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "base/as_size.h"
#include "engine/layers.h"
#include "engine/model_impl.h"
#include "engine/output_projection.h"
#include "engine/replay.h"
#include "engine/session_impl.h"

namespace winnow::engine {

namespace {

bool is_shared(const model::Hparams& hparams, int kv_layer) { return hparams.last_reader(kv_layer) != kv_layer; }

}  // namespace

Prefill::Prefill(Session::Impl& session, const PrefillPlan& plan, network::Pass pass, const ReadingInput& input,
                 const Rankings& rankings)
    : session_(session),
      plan_(plan),
      pass_(std::move(pass)),
      past_(input.past),
      known_(input.known),
      observer_(input.observer),
      outputs_(input.outputs),
      scratch_(session.account, plan.scratch_type(), kv_heads_of(session.hparams), plan.capacity()),
      hidden_(session.executor, session.hparams, session.account, begin_branches(input, rankings),
              "the hidden states of the prompt") {
  if (past_ != nullptr) past_rows_.emplace(session.account, scratch_.type());
}

const model::Hparams& Prefill::hparams() const { return session_.hparams; }

/// Scratches of layers whose keys other layers share exist at the same time, and so do the rows that are copied aside.
std::size_t Prefill::scratch_bytes(const model::Hparams& hparams, const PrefillPlan& plan) {
  const auto bytes = [&](std::span<const cache::KvHeads> heads, int rows) {
    return cache::LayerScratch::bytes(plan.scratch_type(), heads, rows);
  };
  std::size_t out = bytes(kv_heads_of(hparams), plan.capacity());
  for (int layer = 0; layer < hparams.n_kv_layer; ++layer) {
    const auto heads = kv_heads_of(hparams.layer(layer));
    if (!is_shared(hparams, layer)) continue;
    const int intact = plan.overwrites_text() ? 0 : plan.text() - plan.known();
    out += bytes({&heads, 1}, plan.capacity() + plan.rows() - intact);
  }
  return out;
}

std::vector<Token> Prefill::begin_branches(const ReadingInput& input, const Rankings& rankings) {
  const CountingScope counting(session_.account);
  std::vector<Token> rows(input.text.begin() + plan_.known(), input.text.end());
  for (std::size_t i = 0; i < plan_.branches().size(); ++i) {
    const auto& plan = plan_.branches()[i];
    std::vector<Token> prompt(input.text.begin(), input.text.end());
    if (!input.questions.empty()) {
      const auto& question = input.questions[i];
      rows.insert(rows.end(), question.begin(), question.end());
      prompt.insert(prompt.end(), question.begin(), question.end());
    }
    for (const auto& replay : plan.replays) {
      for (const auto& passage : replay.passages) {
        const auto again = tokens_of(passage, prompt, replay.request->draft(), session_.model->impl().vocab);
        rows.insert(rows.end(), again.begin(), again.end());
      }
    }
    branches_.emplace_back(session_, plan, plan_.past().tokens,
                           rankings.empty() ? std::span<const std::shared_ptr<Ranking>>() : rankings[i]);
    branches_.back().put(prompt);
  }
  if (rows.size() != as_size(plan_.rows())) throw std::logic_error("the rows of a prefill differ from its plan");
  return rows;
}

bool Prefill::advance() {
  const CountingScope counting(session_.account);
  if (next_ == plan_.chunks().size()) return end_layer();
  if (next_ == 0) begin_layer();
  run(plan_.chunks()[next_++]);
  const bool is_last = hparams().last_reader(kv_layer()) == layer_;
  for (std::size_t i = 0; is_last && i < branches_.size(); ++i) {
    if (plan_.branches()[i].end == next_) compress(branches_[i]);
  }
  return next_ < plan_.chunks().size() || end_layer();
}

/// Called right after the last chunk, so that a layer without experts costs no extra turn.
bool Prefill::end_layer() {
  if (hidden_.advance_layer(pass_, layer_)) return true;
  next_ = 0;
  return ++layer_ < hparams().n_layer;
}

void Prefill::begin_layer() {
  const auto& spec = hparams().layer(layer_);
  if (kv_layer() == layer_) {
    if (is_shared(hparams(), layer_))
      shared_.try_emplace(layer_, session_.account, scratch_.type(), spec.n_head_kv, spec.head_dim,
                          scratch_.capacity());
    scratch_of(layer_).begin_layer(kv_heads_of(spec));
  } else {
    scratch_of(kv_layer()).fetch({});  // chunks extend it again over the same rows
  }
  intact_ = kv_layer() == layer_ || plan_.overwrites_text() ? 0 : plan_.text();
  if (past_rows_) past_->read(layer_, *past_rows_);
  for (auto& branch : branches_) {
    branch.begin_layer(layer_);
    if (known_ != nullptr && plan_.has_states() && kv_layer() == layer_) branch.begin_observers(layer_, *known_);
  }
  if (observer_ != nullptr) observer_->begin_layer(observed_layer(hparams(), layer_, branches_.front().tokens(), 0));
}

cache::LayerScratch& Prefill::scratch_of(int kv_layer) {
  const auto found = shared_.find(kv_layer);
  return found == shared_.end() ? scratch_ : found->second;
}

void Prefill::put_rows(const Chunk& chunk, std::size_t number) {
  const auto rows = aside_.find({kv_layer(), number});
  if (rows == aside_.end()) return;
  auto& scratch = scratch_of(kv_layer());
  scratch.put_rows(chunk.position, chunk.rows.count, scratch.type(), rows->second.data());
}

void Prefill::copy_rows(const Chunk& chunk, std::size_t number) {
  if (kv_layer() != layer_ || !is_shared(hparams(), layer_)) return;
  if (!chunk.branch && !plan_.overwrites_text()) return;
  const auto& scratch = scratch_of(layer_);
  Buffer rows(session_.account, scratch.bytes_of_rows(chunk.rows.count), "keys and values of a question");
  scratch.copy_rows(chunk.position, chunk.rows.count, scratch.type(), rows.data());
  aside_.insert_or_assign({layer_, number}, std::move(rows));
}

void Prefill::begin_rows(const Chunk& chunk) {
  auto& scratch = scratch_of(kv_layer());
  if (intact_ < chunk.after && known_ != nullptr) known_->put(kv_layer(), {intact_, chunk.after - intact_}, scratch);
  scratch.truncate(chunk.position);
  intact_ = chunk.after + (chunk.replay ? 0 : chunk.rows.count);
}

void Prefill::run(const Chunk& chunk) {
  std::vector<std::int32_t> positions(chunk.rows.count);
  std::iota(positions.begin(), positions.end(), plan_.past().tokens + chunk.position);
  auto& scratch = scratch_of(kv_layer());
  begin_rows(chunk);
  scratch.extend(positions);
  const auto number = as_size(&chunk - plan_.chunks().data());
  put_rows(chunk, number);
  auto attention = attention_of(chunk);
  hidden_.run_layer(pass_, layer_, chunk.rows.first, positions, attention, until(chunk));
  copy_rows(chunk, number);
  rows_done_ += chunk.rows.count;
}

network::Until Prefill::until(const Chunk& chunk) const {
  const auto has_some_of = [&chunk](RowRange rows) {
    return rows.first < chunk.rows.first + chunk.rows.count && chunk.rows.first < rows.first + rows.count;
  };
  const auto has_last_of = [&](const PrefillPlan::Branch& branch) { return has_some_of({branch.last_row, 1}); };
  const bool is_read =
      layer_ + 1 < hparams().n_layer || has_some_of(outputs_) || std::ranges::any_of(plan_.branches(), has_last_of);
  return is_read ? network::Until::output : network::Until::attention;
}

RowRange Prefill::output(RowRange tokens) const {
  const bool is_asked =
      tokens.first >= outputs_.first && tokens.first + tokens.count <= outputs_.first + outputs_.count;
  if (!is_asked || plan_.known() > 0) throw std::logic_error("a reading was not asked for the output of these tokens");
  return tokens;
}

double Prefill::done() const { return static_cast<double>(rows_done_) / (hidden_.rows() * hparams().n_layer); }

/// Chunks of the text are seen by the observers of all prompts.
ChunkObservers Prefill::observers_of(const Chunk& chunk) const {
  ChunkObservers out;
  if (chunk.replay) {
    if (hparams().layer(layer_).window > 0) return out;
    out.observers.push_back(branches_[*chunk.branch].observer_of_replay(kv_layer(), *chunk.replay));
    out.recorded = chunk.recorded;
    out.distance = chunk.distance;
    return out;
  }
  for (std::size_t i = 0; i < branches_.size(); ++i) {
    if (!chunk.branch || *chunk.branch == i)
      branches_[i].add_observers(kv_layer(), chunk.position + chunk.rows.count, out.observers);
  }
  if (observer_ != nullptr) out.observers.push_back(observer_);
  return out;
}

PromptAttention Prefill::attention_of(const Chunk& chunk) {
  return {*session_.prefill_attention, shape_of(hparams(), layer_),        scratch_of(kv_layer()), chunk.position,
          observers_of(chunk),         past_rows_ ? &*past_rows_ : nullptr};
}

void Prefill::compress(PrefillBranch& branch) {
  auto& scratch = scratch_of(kv_layer());
  scratch.truncate(branch.tokens());
  if (observer_ != nullptr) observer_->end_layer({kv_layer(), scratch, OutputProjection(session_.executor)});
  if (known_ != nullptr && &branch == &branches_.front()) known_->copy(kv_layer(), scratch);
  branch.compress(kv_layer(), scratch);
}

}  // namespace winnow::engine
