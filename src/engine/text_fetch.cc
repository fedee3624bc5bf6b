// SPDX-License-Identifier: Apache-2.0
#include "engine/text_fetch.h"

#include <algorithm>
#include <utility>

#include "base/as_size.h"
#include "base/log.h"
#include "winnow/error.h"

namespace winnow::engine {

namespace {

constexpr auto kBlockTokens = as_size(TextBlock::kTokens);
/// A tier that shows no progress for this long is not waited for.
constexpr std::chrono::milliseconds kPatience(2000);

}  // namespace

TextFetch::TextFetch(Session::Impl& session, TextTiers stores, std::string owner, std::span<const Token> text,
                     ElementType type)
    : session_(session),
      stores_(stores),
      owner_(std::move(owner)),
      type_(type),
      chain_(stores.memory.find(owner_, text)),
      moved_(Clock::now()) {
  const std::size_t known = chain_.size() * kBlockTokens;
  if (text.size() < known + kBlockTokens || !stores_.tier->may_read()) return;
  text_.assign(text.begin() + static_cast<std::ptrdiff_t>(known), text.end());
  asked_ = std::make_shared<TierBlocks>();
  asked_->names = stores_.tier->names(owner_, text);
  asked_->names.erase(asked_->names.begin(), asked_->names.begin() + static_cast<std::ptrdiff_t>(chain_.size()));
  phase_ = Phase::counting;
  stores_.tier->count(asked_);
}

TextFetch::~TextFetch() { end(); }

bool TextFetch::advance() {
  if (phase_ == Phase::ended) return false;
  if (asked_->working > 0) {
    if (!is_stuck()) return true;
    stores_.tier->give_up(kPatience);
    end();
    return false;
  }
  if (phase_ == Phase::counting) {
    begin_reading();
  } else {
    store();
  }
  return phase_ != Phase::ended;
}

bool TextFetch::is_stuck() {
  const std::size_t next = asked_->next;
  if (std::exchange(last_next_, next) != next) moved_ = Clock::now();
  return Clock::now() - moved_ > kPatience;
}

/// Takes as many blocks as have room in memory.
void TextFetch::begin_reading() {
  const std::size_t bytes = TextBlock::bytes(session_.hparams, type_);
  for (std::size_t i = 0; i < asked_->good && stores_.memory.reserve(bytes); ++i) {
    reserved_ += bytes;
    try {
      asked_->blocks.push_back(std::make_shared<TextBlock>(session_.account, session_.hparams, type_,
                                                           std::span(text_).subspan(i * kBlockTokens, kBlockTokens)));
    } catch (const MemoryError& error) {
      log().info("{} stored blocks of a text are not read: {}", asked_->good - i, error.what());
      break;
    }
  }
  if (asked_->blocks.empty()) return end();
  phase_ = Phase::reading;
  moved_ = Clock::now();
  stores_.tier->read(asked_);
}

void TextFetch::store() {
  for (std::size_t i = 0; i < asked_->good; ++i) chain_.push_back(asked_->blocks[i]);
  end();
  stores_.memory.put(owner_, chain_);
}

void TextFetch::end() {
  if (asked_ != nullptr) asked_->is_unwanted = true;
  asked_.reset();
  stores_.memory.release(std::exchange(reserved_, 0));
  phase_ = Phase::ended;
}

}  // namespace winnow::engine
