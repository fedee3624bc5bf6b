// SPDX-License-Identifier: Apache-2.0
#include "engine/embedding.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/as_size.h"
#include "base/check_memory.h"
#include "engine/cache_bytes.h"
#include "engine/model_impl.h"

namespace winnow::engine {

namespace {

constexpr int kPooledRows = 256;  ///< rows that are pooled together

std::size_t pooling_bytes(const model::Hparams& hparams) { return 3 * network::States::bytes(hparams, kPooledRows); }

}  // namespace

PooledRows::PooledRows(model::Pooling pooling, int width) : pooling_(pooling), vector_(as_size(width)) {}

/// Sums up without dividing: the vector is normalised in the end.
void PooledRows::add(std::span<const float> rows) {
  const std::size_t width = vector_.size();
  for (std::size_t first = 0; first < rows.size(); first += width) {
    if (pooling_ == model::Pooling::last) std::ranges::fill(vector_, 0);
    for (std::size_t i = 0; i < width; ++i) vector_[i] += rows[first + i];
  }
}

std::vector<float> PooledRows::take() {
  const double length = std::sqrt(std::inner_product(vector_.begin(), vector_.end(), vector_.begin(), 0.0));
  std::vector<float> out;
  for (double& value : vector_) out.push_back(static_cast<float>(length > 0 ? std::exchange(value, 0) / length : 0));
  return out;
}

EmbeddingSource::EmbeddingSource(std::vector<std::vector<Token>> texts, std::optional<model::Pooling> pooling,
                                 Told tell)
    : texts_(std::move(texts)), pooling_(pooling), tell_(std::move(tell)) {
  for (const auto& text : texts_) tokens_ += static_cast<int>(text.size());
}

CacheOptions EmbeddingSource::keep() { return {Spec::parse("streaming-llm:sinks=1"), Budget::parse("8"), {}}; }

std::size_t EmbeddingSource::longest() const {
  return std::ranges::max(texts_, {}, [](const auto& text) { return text.size(); }).size();
}

std::size_t EmbeddingSource::bytes(const Session::Impl& session) const {
  return ReadingPlan(session, static_cast<int>(longest()), keep_).bytes().all() + pooling_bytes(session.hparams);
}

std::size_t EmbeddingSource::cache_bytes(const Session::Impl& session) const {
  return engine::cache_bytes(keep_, session.hparams, static_cast<int>(longest()));
}

void EmbeddingSource::begin(Session::Impl& session) {
  session_ = &session;
  if (!pooling_) pooling_ = session.model->impl().pooling;
  check_memory(bytes(session), fmt::format("embedding a text of {} tokens", longest()));
  begin_text();
}

void EmbeddingSource::begin_text() {
  cache_.reset();
  const auto& text = texts_[text_];
  const int size = static_cast<int>(text.size());
  pooled_ = *pooling_ == model::Pooling::last ? size - 1 : 0;
  reading_.emplace(*session_, ReadingPlan(*session_, size, keep_),
                   ReadingInput{.text = text, .outputs = {pooled_, size - pooled_}});
  rows_.emplace(*pooling_, session_->hparams.n_embd);
  has_passed_ = false;
}

bool EmbeddingSource::advance() {
  if (!has_passed_) {
    has_passed_ = !reading_->advance();
    return true;
  }
  if (pool()) return true;
  end_text();
  if (text_ == texts_.size()) return false;
  begin_text();
  return true;
}

bool EmbeddingSource::pool() {
  const int all = static_cast<int>(texts_[text_].size());
  const int count = std::min(all - pooled_, kPooledRows);
  Buffer states(session_->account, network::States::bytes(session_->hparams, as_size(count)),
                "the last hidden states of a text");
  reading_->text_states({pooled_, count}, states.as<float>());
  rows_->add(states.as<float>());
  pooled_ += count;
  return pooled_ < all;
}

void EmbeddingSource::end_text() {
  tell_(rows_->take());
  cache_ = std::move(reading_->take_caches(0).front());
  reading_.reset();
  before_ += static_cast<int>(texts_[text_].size());
  ++text_;
}

double EmbeddingSource::done() const {
  const double read = reading_ ? reading_->done() * static_cast<double>(texts_[text_].size()) : 0;
  return (before_ + read) / tokens_;
}

}  // namespace winnow::engine
