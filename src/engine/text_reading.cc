// SPDX-License-Identifier: Apache-2.0
#include "engine/text_reading.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "base/as_size.h"
#include "base/check_memory.h"
#include "base/log.h"
#include "engine/answering.h"

namespace winnow::engine {

TextReading::TextReading(Session::Impl& session, const Request& request, const TextPlan& plan, TextStores stores)
    : session_(session), text_(request.text()), plan_(plan), prefixes_(stores.prefixes), texts_(stores.texts) {
  for (const auto& part : plan.parts()) ends_.push_back(part.stage.end);
  const bool is_continued = !request.question.empty() || stages() > 1;
  if (text_.cache_salt && is_continued && !text_.prompt_logprobs && prefixes_.has_room(stored_bytes()))
    owner_ = owner_of(request.keep, text_.asked, *text_.cache_salt);
}

/// Bytes of the text's entry in the store.
std::size_t TextReading::stored_bytes() const {
  return plan_.cache().grown(session_, 0) + text_.tokens.size() * sizeof(Token) +
         as_size(session_.hparams.n_vocab) * sizeof(float);
}

Prefix TextReading::prefix(std::size_t stages) const {
  return {*owner_, std::span(ends_).first(stages), std::span(text_.tokens).first(ends_[stages - 1])};
}

std::size_t TextReading::stored() const {
  if (!is_shared()) return 0;
  if (lookup_ && lookup_->generation == prefixes_.generation()) return lookup_->stages;
  std::size_t stages = this->stages();
  while (stages > 0 && !prefixes_.has(prefix(stages))) --stages;
  lookup_ = {prefixes_.generation(), stages};
  return stages;
}

/// A conversation that continues begins with all stages; one that branches off begins with some of them. Storing after
/// powers of two costs little, and a branch reads less than half of its shared stages again.
std::size_t TextReading::next_stored(std::size_t stages) const {
  return std::min(std::bit_ceil(stages), this->stages());
}

bool TextReading::will_store_more_of(const TextReading& later) const {
  return will_store_stages_of(later) || will_store_blocks_of(later);
}

/// Comparing up to the next stage is enough: texts that differ there differ in all later stages.
bool TextReading::will_store_stages_of(const TextReading& later) const {
  if (!is_shared() || !later.is_shared()) return false;
  const std::size_t next = std::max(stage_, later.stored()) + 1;
  if (next > std::min(this->stages(), later.stages())) return false;
  const std::size_t stages = next_stored(next);
  return stages <= later.stages() && prefix(stages) == later.prefix(stages);
}

/// One of two texts is read first. If it is this one, `later` can take `more` tokens from it. That is better if the sum
/// of the times until each is read is less: this + (this + later - more) < later + (later + this).
bool TextReading::will_store_blocks_of(const TextReading& later) const {
  const auto* const now = known_ ? later.known_now() : nullptr;
  if (now == nullptr || now->part.owner != known_->owner()) return false;
  const auto text = std::span(later.text_.tokens).first(as_size(now->most));
  const auto common = static_cast<int>(std::ranges::mismatch(text, text_.tokens).in1 - text.begin());
  const int more = known_->will_store(common, now->states) - now->tokens;
  return more > 0 && tokens_left() < later.tokens_left() + more;
}

void TextReading::begin() {
  stage_ = stored();
  has_begun_ = true;
  if (stage_ > 0) {
    const auto* const entry = prefixes_.find(prefix(stage_));
    cache_ = entry->cache.clone();
    logits_ = entry->logits;
    found_ = ends_[stage_ - 1];
    fetch_.reset();
  }
  if (is_done()) return;
  check_memory(plan_.reading(), fmt::format("reading {} tokens", text_.tokens.size() - found_));
  begin_stage();
}

std::span<const Token> TextReading::stage_tokens() const {
  return std::span(text_.tokens).subspan(part().stage.first, as_size(part().stage.tokens()));
}

void TextReading::begin_stage() {
  has_passed_ = false;
  if (!part().reading) {
    extension_.emplace(session_, cache_->impl(), stage_tokens());
    return;
  }
  if (stage_ == 0 && is_known_text()) return begin_text();
  if (cache_) past_.emplace(cache_->impl(), static_cast<int>(part().stage.first));
  const int scored = text_.prompt_logprobs ? part().stage.tokens() : 0;
  reading_.emplace(session_, *part().reading,
                   ReadingInput{.text = stage_tokens(), .past = past_ ? &*past_ : nullptr, .outputs = {0, scored}});
}

bool TextReading::is_known_text() const {
  return text_.cache_salt && !text_.prompt_logprobs && texts_.memory.memory() > 0 && can_know_texts(session_);
}

StoredPart TextReading::known_part() const {
  const auto& part = plan_.parts().front();
  const auto pass = session_.begin_pass(as_size(part.stage.tokens()), part.reading->bytes().all());
  return stored_part(pass, *part.reading, texts_.type, *text_.cache_salt);
}

PassLimits TextReading::limits() const {
  const auto& plan = *plan_.parts().front().reading;
  return {plan.first_seen(session_), [this, &plan](int rows) { return plan.states(session_, rows); }};
}

const TextReading::Known* TextReading::known_now() const {
  if (!is_known_text() || stored() > 0) return nullptr;
  const auto& store = texts_.memory;
  if (known_lookup_ && known_lookup_->generation == store.generation()) return &*known_lookup_;
  const auto limits = this->limits();
  Known out{store.generation(), known_part(), {}, 0, 0};
  out.states = names_of(limits.states(out.part.most));
  out.most = limits.most(out.part);
  const std::size_t blocks =
      store.blocks_with_facts(out.part.owner, text_.tokens, as_size(out.most / TextBlock::kTokens), out.states);
  out.tokens = static_cast<int>(blocks) * TextBlock::kTokens;
  return &known_lookup_.emplace(std::move(out));
}

bool TextReading::may_fetch() const {
  return texts_.tier != nullptr && text_.tokens.size() > kBlockTokens && is_known_text() && stored() == 0;
}

void TextReading::fetch() {
  if (std::exchange(has_fetched_, true) || !may_fetch()) return;
  fetch_.emplace(session_, texts_, known_part(), text_.tokens, limits());
}

void TextReading::begin_text() {
  const auto& stage = part().stage;
  const auto& plan = *part().reading;
  known_.emplace(session_, texts_, known_part(), stage_tokens(), fetch_ ? fetch_->shared() : 0, limits());
  fetch_.reset();
  found_ = as_size(known_->tokens());
  const ReadingInput input{.text = stage_tokens(), .known = &*known_};
  if (found_ == 0) {
    reading_.emplace(session_, plan, input);
    return;
  }
  const ReadingSizes sizes{.text = stage.tokens(), .known = known_->tokens(), .asked = static_cast<int>(stage.asked)};
  reading_.emplace(session_, ReadingPlan(session_, sizes, std::span(&*stage.keep, 1)), input);
}

double TextReading::tokens_left() const {
  const std::size_t ended = has_begun_ ? stage_ : stored();
  const auto left = static_cast<double>(text_.tokens.size() - (ended > 0 ? ends_[ended - 1] : 0));
  if (!has_begun_) {
    const auto* const known = known_now();
    return left - (known == nullptr ? 0 : known->tokens);
  }
  if (extension_) return left - part().stage.tokens() + extension_->tokens_left();
  if (!reading_) return left;
  const int known = known_ ? known_->tokens() : 0;
  return left - known - reading_->done() * (part().stage.tokens() - known);
}

std::vector<const Cache*> TextReading::caches() const {
  std::vector<const Cache*> out;
  if (cache_) out.push_back(&*cache_);
  if (!reading_) return out;
  const auto read = reading_->caches(0);
  out.insert(out.end(), read.begin(), read.end());
  return out;
}

void TextReading::advance() {
  if (reading_) return advance_reading();
  append_tokens();
}

void TextReading::append_tokens() {
  if (extension_->advance()) return;
  logits_ = extension_->take_logits();
  extension_.reset();
  end_stage();
}

void TextReading::advance_reading() {
  if (!has_passed_) {
    try {
      has_passed_ = !reading_->advance();
    } catch (const TextLost& error) {
      log().warn("{}", error.what());
      return begin_again();
    }
    if (!has_passed_ || text_.prompt_logprobs) return;
  }
  if (text_.prompt_logprobs && score()) return;
  take_read();
  end_stage();
}

/// Less of the text is known now.
void TextReading::begin_again() {
  reading_.reset();
  known_.reset();
  begin_text();
}

bool TextReading::score() {
  const std::size_t all = text_.tokens.size() - 1;
  const std::size_t count = std::min(all - scored_.size(), as_size(kScoredRows));
  const auto vocabulary = as_size(session_.hparams.n_vocab);
  if (count == 0) return false;
  Buffer logits(session_.account, count * vocabulary * sizeof(float), "the logits of a prompt's tokens");
  reading_->text_logits({static_cast<int>(scored_.size()), static_cast<int>(count)}, logits.as<float>());
  for (std::size_t i = 0; i < count; ++i) {
    const Token next = text_.tokens[scored_.size() + 1];
    scored_.push_back(
        log_probabilities(logits.as<float>().subspan(i * vocabulary, vocabulary), next, *text_.prompt_logprobs));
  }
  return scored_.size() < all;
}

/// Frees the reading's work space before the stage is appended to the earlier ones.
void TextReading::take_read() {
  Cache kept = std::move(reading_->take_caches(0).front());
  logits_ = reading_->logits(0);
  reading_.reset();
  known_.reset();
  past_.reset();
  if (cache_) {
    cache_->impl().put_from(static_cast<int>(part().stage.first), std::move(kept.impl()));
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
