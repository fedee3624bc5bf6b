// SPDX-License-Identifier: Apache-2.0
#include "engine/text_fetch.h"

#include <algorithm>
#include <utility>

#include "base/as_size.h"

namespace winnow::engine {

namespace {

/// A tier that shows no progress for this long is not waited for.
constexpr std::chrono::milliseconds kPatience(2000);

}  // namespace

TextFetch::TextFetch(Session::Impl& session, TextTiers stores, StoredPart part, std::span<const Token> text,
                     const PassLimits& limits)
    : session_(session),
      stores_(stores),
      part_(std::move(part)),
      text_(text.first(as_size(limits.most(part_)))),
      limits_(limits),
      states_(engine::names_of(limits.states(part_.most))),
      chain_(stores.memory.find(part_.owner, text_)),
      known_(stores.memory.blocks_with_facts(part_.owner, text_, chain_.size(), states_)),
      first_(chain_.size()),
      shared_(chain_.size()),
      room_(stores.memory),
      moved_(Clock::now()) {
  if (text_.size() < (known_ + 1) * kBlockTokens || !stores_.tier->may_read()) return;
  names_ = stores_.tier->names(part_.owner, text_);
  asked_ = std::make_shared<TierRequest>();
  asked_->names.assign(names_.begin() + static_cast<std::ptrdiff_t>(chain_.size()), names_.end());
  for (std::size_t i = known_; i < names_.size(); ++i) {
    for (const auto& state : states_) asked_->names.push_back(stores_.tier->name_of_state(names_[i], state));
  }
  phase_ = Phase::looking;
  stores_.tier->look(asked_);
}

bool TextFetch::advance() {
  if (phase_ == Phase::ended) return false;
  if (asked_->working > 0) {
    if (!is_stuck()) return true;
    stores_.tier->give_up(kPatience);
    end();
    return false;
  }
  if (phase_ == Phase::looking) {
    exist_ = std::move(asked_->exist);
    shared_ = found_blocks();
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

std::size_t TextFetch::found_blocks() const {
  const auto end = exist_.begin() + static_cast<std::ptrdiff_t>(names_.size() - first_);
  return first_ + as_size(std::find(exist_.begin(), end, false) - exist_.begin());
}

/// Place in exist_ of the first state after some blocks. REQUIRES: more than the known ones.
std::size_t TextFetch::states_after(std::size_t blocks) const {
  return names_.size() - first_ + (blocks - 1 - known_) * states_.size();
}

bool TextFetch::has_states(std::size_t blocks) const {
  const auto begin = exist_.begin() + static_cast<std::ptrdiff_t>(states_after(blocks));
  return std::all_of(begin, begin + static_cast<std::ptrdiff_t>(states_.size()), [](bool exists) { return exists; });
}

/// Returns false if there is no room for all of them.
bool TextFetch::add_blocks(TierRequest& wanted) {
  const std::size_t bytes = TextBlock::bytes(session_.hparams, part_.type);
  for (std::size_t i = chain_.size(); i < reached_; ++i) {
    const auto make = [&] {
      const auto tokens = text_.subspan(i * kBlockTokens, kBlockTokens);
      new_.push_back(std::make_shared<TextBlock>(session_.account, session_.hparams, part_.type, tokens));
    };
    if (!room_.reserve(bytes, make)) return false;
    wanted.names.push_back(names_[i]);
    wanted.layers.emplace_back(new_.back(), &new_.back()->rows());
  }
  return true;
}

/// Returns false if there is no room for all of them.
bool TextFetch::add_states(TierRequest& wanted) {
  for (const auto& [name, sizes] : limits_.states(static_cast<int>(reached_) * TextBlock::kTokens)) {
    const auto make = [&, &sizes = sizes] {
      wanted.layers.push_back(std::make_shared<LayerBytes>(session_.account, sizes, "states of a text"));
    };
    if (!room_.reserve(LayerBytes::bytes(sizes), make)) return false;
    wanted.names.push_back(stores_.tier->name_of_state(names_[reached_ - 1], name));
  }
  return true;
}

/// Takes as many blocks as have room in memory. States need all blocks before them.
void TextFetch::begin_reading() {
  reached_ = found_blocks();
  while (reached_ > known_ && !has_states(reached_)) --reached_;
  if (reached_ == known_) return end();
  const auto wanted = std::make_shared<TierRequest>();
  const bool have_room = add_blocks(*wanted) && add_states(*wanted);
  if (wanted->names.empty() || (!have_room && !states_.empty())) return end();
  asked_ = wanted;
  phase_ = Phase::reading;
  moved_ = Clock::now();
  stores_.tier->read(asked_);
}

void TextFetch::store() {
  const auto& asked = *asked_;
  const std::size_t blocks = std::min<std::size_t>(asked.good, new_.size());
  chain_.insert(chain_.end(), new_.begin(), new_.begin() + static_cast<std::ptrdiff_t>(blocks));
  room_.release();
  stores_.memory.put(part_.owner, chain_);
  if (asked.good < asked.names.size()) return read_less(asked.good);
  for (std::size_t i = new_.size(); i < asked.names.size(); ++i) {
    facts_.push_back(asked.layers[i]);
    stores_.memory.put_fact(part_.owner, text_.first(reached_ * kBlockTokens), asked.names[i].state, facts_.back());
  }
  end();
}

/// A value that could not be read counts as one that does not exist: there may be states after fewer blocks.
void TextFetch::read_less(std::size_t bad) {
  if (!stores_.tier->may_read()) return end();
  const std::size_t blocks = new_.size();
  exist_[bad < blocks ? chain_.size() - first_ : states_after(reached_) + bad - blocks] = false;
  new_.clear();
  begin_reading();
}

void TextFetch::end() {
  if (asked_ != nullptr) asked_->is_unwanted = true;
  asked_.reset();
  new_.clear();
  room_.release();
  phase_ = Phase::ended;
}

}  // namespace winnow::engine
