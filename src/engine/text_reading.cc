// SPDX-License-Identifier: Apache-2.0
#include "engine/text_reading.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "base/as_size.h"
#include "base/check_memory.h"
#include "engine/answering.h"
#include "engine/promise.h"

namespace winnow::engine {

TextReading::TextReading(Session::Impl& session, const Request& request, Prefixes& prefixes, std::size_t bytes)
    : session_(session),
      request_(request),
      prefixes_(prefixes),
      bytes_(bytes),
      stages_(stages_of(request, session.hparams)) {
  for (const auto& stage : stages_) ends_.push_back(stage.end);
  if (request.cache_salt && !request.prompt_logprobs && prefixes.has_room(stored_bytes()))
    owner_ = owner_of(request.keep, request.asked, *request.cache_salt);
}

/// Of the text, when it is stored.
std::size_t TextReading::stored_bytes() const {
  return kept_bytes(stages_, request_.keep, session_.hparams) + request_.text.size() * sizeof(Token) +
         as_size(session_.hparams.n_vocab) * sizeof(float);
}

Prefix TextReading::prefix(std::size_t stages) const {
  return {*owner_, std::span(ends_).first(stages), std::span(request_.text).first(ends_[stages - 1])};
}

std::size_t TextReading::stored() const {
  if (!is_shared()) return 0;
  if (lookup_ && lookup_->generation == prefixes_.generation()) return lookup_->stages;
  std::size_t stages = stages_.size();
  while (stages > 0 && !prefixes_.has(prefix(stages))) --stages;
  lookup_ = {prefixes_.generation(), stages};
  return stages;
}

/// A conversation that goes on begins with all stages, one that branches off with some of them. Powers of two are so
/// few that storing costs little, and a branch reads less than half of the stages again that it shares.
std::size_t TextReading::next_stored(std::size_t stages) const {
  return std::min(std::bit_ceil(stages), stages_.size());
}

/// The next one decides: texts that differ there differ in all later ones.
bool TextReading::will_store_more_of(const TextReading& later) const {
  if (!is_shared() || !later.is_shared()) return false;
  const std::size_t next = std::max(stage_, later.stored()) + 1;
  if (next > std::min(stages_.size(), later.stages_.size())) return false;
  const std::size_t stages = next_stored(next);
  return stages <= later.stages_.size() && prefix(stages) == later.prefix(stages);
}

void TextReading::begin() {
  stage_ = stored();
  has_begun_ = true;
  if (stage_ > 0) {
    const auto* const entry = prefixes_.find(prefix(stage_));
    cache_ = entry->cache.clone();
    logits_ = entry->logits;
    found_ = ends_[stage_ - 1];
  }
  if (is_done()) return;
  check_memory(bytes_, fmt::format("reading {} tokens", request_.text.size() - found_));
  begin_stage();
}

std::span<const Token> TextReading::stage_tokens() const {
  return std::span(request_.text).subspan(stages_[stage_].first, as_size(stages_[stage_].tokens()));
}

void TextReading::begin_stage() {
  const auto& keep = stages_[stage_].keep;
  has_passed_ = false;
  if (!keep) {
    extension_.emplace(session_, cache_->impl(), stage_tokens());
    return;
  }
  auto context = session_.prefill_context(session_.begin_pass(stage_tokens().size(), bytes_));
  if (cache_) past_.emplace(cache_->impl(), static_cast<int>(stages_[stage_].first));
  context.past = past_ ? &*past_ : nullptr;
  context.asked = static_cast<int>(stages_[stage_].asked);
  prefill_.emplace(session_, std::move(context), bytes_, stage_tokens(), std::vector<std::vector<Token>>(1),
                   std::span(&*keep, 1));
}

double TextReading::tokens_left() const {
  const std::size_t ended = has_begun_ ? stage_ : stored();
  const auto left = static_cast<double>(request_.text.size() - (ended > 0 ? ends_[ended - 1] : 0));
  if (extension_) return left - stages_[stage_].tokens() + extension_->tokens_left();
  return left - (prefill_ ? prefill_->done() * stages_[stage_].tokens() : 0);
}

std::vector<const Cache*> TextReading::caches() const {
  std::vector<const Cache*> out;
  if (cache_) out.push_back(&*cache_);
  if (!prefill_) return out;
  const auto read = prefill_->caches(0);
  out.insert(out.end(), read.begin(), read.end());
  return out;
}

void TextReading::advance() {
  if (prefill_) return advance_prefill();
  append_tokens();
}

void TextReading::append_tokens() {
  if (extension_->advance()) return;
  logits_ = extension_->take_logits();
  extension_.reset();
  end_stage();
}

void TextReading::advance_prefill() {
  if (!has_passed_) {
    const Session::Impl::Stops stops(session_);
    has_passed_ = !prefill_->advance();
    if (!has_passed_ || request_.prompt_logprobs) return;
  }
  if (request_.prompt_logprobs && score()) return;
  take_prefilled();
  end_stage();
}

bool TextReading::score() {
  const std::size_t all = request_.text.size() - 1;
  const std::size_t count = std::min(all - scored_.size(), as_size(kScoredRows));
  const auto vocabulary = as_size(session_.hparams.n_vocab);
  if (count == 0) return false;
  Buffer logits(session_.account, count * vocabulary * sizeof(float), "the logits of a prompt's tokens");
  prefill_->text_logits({static_cast<int>(scored_.size()), static_cast<int>(count)}, logits.as<float>());
  for (std::size_t i = 0; i < count; ++i) {
    const Token next = request_.text[scored_.size() + 1];
    scored_.push_back(
        log_probabilities(logits.as<float>().subspan(i * vocabulary, vocabulary), next, *request_.prompt_logprobs));
  }
  return scored_.size() < all;
}

/// The work space of the prefill is given back before the stage is put after the others.
void TextReading::take_prefilled() {
  Cache kept = std::move(prefill_->take_caches(0).front());
  logits_ = prefill_->logits(0);
  prefill_.reset();
  past_.reset();
  if (cache_) {
    cache_->impl().put_from(static_cast<int>(stages_[stage_].first), std::move(kept.impl()));
  } else {
    cache_ = std::move(kept);
  }
}

void TextReading::end_stage() {
  ++stage_;
  if (is_shared() && stage_ == next_stored(stage_)) prefixes_.put(prefix(stage_), *cache_, logits_);
  if (!is_done()) begin_stage();
}

}  // namespace winnow::engine
