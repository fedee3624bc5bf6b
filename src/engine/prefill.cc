// SPDX-License-Identifier: Apache-2.0
#include "engine/prefill.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/as_size.h"
#include "engine/output_projection.h"
#include "engine/replay.h"

namespace winnow::engine {

PromptSize size_of(std::size_t text, std::size_t question, int asked) {
  const int last = static_cast<int>(question);
  return {static_cast<int>(text) + last, last == 0 ? asked : text > 0 ? last : 0};
}

Prefill::Prefill(PrefillContext context, std::span<const Token> text, std::span<const std::vector<Token>> questions,
                 std::span<const CacheOptions> caches, const AllShown& shown)
    : context_(std::move(context)),
      branches_(branches_of(context_, static_cast<int>(text.size()), questions, caches, shown)),
      scratch_(context_.account, scratch_type(context_.options.precision, caches), kv_heads_of(context_.hparams),
               longest(branches_)),
      hidden_(context_.executor, context_.hparams, context_.account, lay_out(text, questions),
              "the hidden states of the prompt") {
  if (context_.past != nullptr) past_.emplace(context_.account, scratch_.type());
}

Prefill::Prefill(PrefillContext context, std::span<const Token> prompt, const CacheOptions& keep)
    : Prefill(std::move(context), prompt, std::vector<std::vector<Token>>(1), std::span(&keep, 1)) {}

std::vector<PrefillBranch> Prefill::branches_of(const PrefillContext& context, int text,
                                                std::span<const std::vector<Token>> questions,
                                                std::span<const CacheOptions> caches, const AllShown& shown) {
  const PrefillSite site{context.executor, context.hparams,     context.vocab,
                         context.account,  context.calibration, context.past == nullptr ? 0 : context.past->tokens()};
  std::vector<PrefillBranch> out;
  for (std::size_t i = 0; i < questions.size(); ++i) {
    const auto size = size_of(as_size(text), questions[i].size(), context.asked);
    out.emplace_back(site, size, caches, shown.empty() ? std::span<const Shown>() : std::span<const Shown>(shown[i]));
  }
  return out;
}

int Prefill::longest(const std::vector<PrefillBranch>& branches) {
  int most = 0;
  for (const auto& branch : branches) most = std::max(most, branch.tokens() + branch.longest_passage());
  return most;
}

std::vector<Token> Prefill::lay_out(std::span<const Token> text, std::span<const std::vector<Token>> questions) {
  std::vector<Token> rows;
  add_chunks(text, {}, rows);
  const int shared = static_cast<int>(rows.size());
  for (std::size_t i = 0; i < branches_.size(); ++i) {
    const bool adds = !questions[i].empty();
    add_chunks(questions[i], {.position = shared, .branch = i}, rows);
    last_rows_.push_back((adds ? static_cast<int>(rows.size()) : shared) - 1);
    std::vector<Token> prompt(text.begin(), text.end());
    prompt.insert(prompt.end(), questions[i].begin(), questions[i].end());
    add_passages(i, prompt, rows);
    ends_.push_back(chunks_.size());
    branches_[i].put(std::move(prompt));
  }
  return rows;
}

void Prefill::add_chunks(std::span<const Token> tokens, const Chunk& kind, std::vector<Token>& rows) {
  const int first = static_cast<int>(rows.size());
  for (const auto& part : chunks_of(static_cast<int>(tokens.size()), context_.options.chunk)) {
    auto& chunk = chunks_.emplace_back(kind);
    chunk.rows = {first + part.first, part.count};
    chunk.position += part.first;
  }
  rows.insert(rows.end(), tokens.begin(), tokens.end());
}

void Prefill::add_passages(std::size_t branch, std::span<const Token> prompt, std::vector<Token>& rows) {
  const int tokens = branches_[branch].tokens();
  const auto replays = branches_[branch].replays();
  for (std::size_t i = 0; i < replays.size(); ++i) {
    for (const auto& passage : replays[i]->replay()->passages) {
      add_chunks(tokens_of(passage, prompt, replays[i]->draft(), context_.vocab),
                 {.position = tokens,
                  .branch = branch,
                  .replay = i,
                  .recorded = {passage.recorded.begin, std::min(passage.recorded.end, tokens)}},
                 rows);
    }
  }
}

std::vector<Prefilled> Prefill::run() {
  while (advance()) continue;
  std::vector<Prefilled> out;
  for (std::size_t i = 0; i < branches_.size(); ++i) out.push_back({take_caches(i), logits(i)});
  return out;
}

bool Prefill::advance() {
  const CountingScope counting(context_.account);
  if (next_ == chunks_.size()) return end_layer();
  if (next_ == 0) begin_layer();
  run(chunks_[next_++]);
  const bool is_last = context_.hparams.last_reader(kv_layer()) == layer_;
  for (std::size_t i = 0; is_last && i < branches_.size(); ++i) {
    if (ends_[i] == next_) compress(branches_[i]);
  }
  return next_ < chunks_.size() || end_layer();
}

/// Also after the last chunk, so that a layer without experts costs no turn.
bool Prefill::end_layer() {
  if (hidden_.advance_layer(context_.pass, layer_)) return true;
  next_ = 0;
  return ++layer_ < context_.hparams.n_layer;
}

void Prefill::begin_layer() {
  const auto& spec = context_.hparams.layer(layer_);
  if (kv_layer() == layer_) {
    if (is_shared(layer_))
      shared_.try_emplace(layer_, context_.account, scratch_.type(), spec.n_head_kv, spec.head_dim,
                          scratch_.capacity());
    scratch_of(layer_).begin_layer(kv_heads_of(spec));
  }
  if (past_) context_.past->read(layer_, *past_);
  for (auto& branch : branches_) branch.begin_layer(layer_);
  if (context_.observer != nullptr)
    context_.observer->begin_layer(observed_layer(context_.hparams, layer_, branches_.front().tokens(), 0));
}

cache::LayerScratch& Prefill::scratch_of(int kv_layer) {
  const auto found = shared_.find(kv_layer);
  return found == shared_.end() ? scratch_ : found->second;
}

void Prefill::put_rows(const Chunk& chunk, std::size_t number) {
  const auto rows = aside_.find({kv_layer(), number});
  if (rows != aside_.end()) scratch_of(kv_layer()).put_rows(chunk.position, chunk.rows.count, rows->second.data());
}

void Prefill::copy_rows(const Chunk& chunk, std::size_t number) {
  if (!chunk.branch || kv_layer() != layer_ || !is_shared(layer_)) return;
  const auto& scratch = scratch_of(layer_);
  Buffer rows(context_.account, scratch.bytes_of_rows(chunk.rows.count), "keys and values of a question");
  scratch.copy_rows(chunk.position, chunk.rows.count, rows.data());
  aside_.insert_or_assign({layer_, number}, std::move(rows));
}

void Prefill::run(const Chunk& chunk) {
  std::vector<std::int32_t> positions(chunk.rows.count);
  const int past = context_.past == nullptr ? 0 : context_.past->tokens();
  std::iota(positions.begin(), positions.end(), past + chunk.position);
  auto& scratch = scratch_of(kv_layer());
  scratch.truncate(chunk.position);
  scratch.extend(positions);
  const auto number = as_size(&chunk - chunks_.data());
  put_rows(chunk, number);
  auto attention = attention_of(chunk);
  hidden_.run_layer(context_.pass, layer_, chunk.rows.first, positions, attention);
  copy_rows(chunk, number);
  rows_done_ += chunk.rows.count;
  if (context_.progress) context_.progress(done());
}

double Prefill::done() const { return static_cast<double>(rows_done_) / (hidden_.rows() * context_.hparams.n_layer); }

/// The observers of all prompts look on while the text passes.
Watching Prefill::watching(const Chunk& chunk) const {
  Watching out;
  if (chunk.replay) {
    if (context_.hparams.layer(layer_).window > 0) return out;
    out.observers.push_back(branches_[*chunk.branch].observer_of_replay(kv_layer(), *chunk.replay));
    out.recorded = chunk.recorded;
    return out;
  }
  for (std::size_t i = 0; i < branches_.size(); ++i) {
    if (!chunk.branch || *chunk.branch == i) branches_[i].add_observers(kv_layer(), out.observers);
  }
  if (context_.observer != nullptr) out.observers.push_back(context_.observer);
  return out;
}

PromptAttention Prefill::attention_of(const Chunk& chunk) {
  return {context_.attention, shape_of(context_.hparams, layer_), scratch_of(kv_layer()), chunk.position,
          watching(chunk),    past_ ? &*past_ : nullptr};
}

void Prefill::compress(PrefillBranch& branch) {
  auto& scratch = scratch_of(kv_layer());
  scratch.truncate(branch.tokens());
  if (context_.observer != nullptr)
    context_.observer->end_layer({kv_layer(), scratch, OutputProjection(context_.executor)});
  branch.compress(kv_layer(), scratch);
}

}  // namespace winnow::engine
