// SPDX-License-Identifier: Apache-2.0
#include "engine/text_fetch.h"

#include <algorithm>
#include <utility>

#include "base/as_size.h"
#include "engine/growing_state.h"

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
      all_(states_.along),
      chain_(stores.memory.find(part_.owner, text_)),
      known_(stores.memory.blocks_with_facts(part_.owner, text_, chain_.size(), states_)),
      first_(chain_.size()),
      shared_(chain_.size()),
      room_(stores.memory),
      moved_(Clock::now()) {
  if (text_.size() < (known_ + 1) * kBlockTokens || !stores_.tier->may_read()) return;
  all_.insert(all_.end(), states_.after.begin(), states_.after.end());
  names_ = stores_.tier->names(part_.owner, text_);
  asked_ = std::make_shared<TierRequest>();
  asked_->names.assign(names_.begin() + static_cast<std::ptrdiff_t>(chain_.size()), names_.end());
  for (std::size_t i = known_; i < names_.size(); ++i) {
    for (const auto& state : all_) asked_->names.push_back(stores_.tier->name_of_state(names_[i], state));
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
    take_existing();
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

void TextFetch::take_existing() {
  exist_ = std::move(asked_->exist);
  shared_ = found_blocks();
  if (all_.empty()) return;
  for (std::size_t blocks = known_; blocks <= shared_; ++blocks)
    sizes_.push_back(limits_.states(static_cast<int>(blocks) * TextBlock::kTokens));
  for (std::size_t blocks = known_ + 1; blocks <= shared_; ++blocks) {
    for (std::size_t state = 0; state < states_.along.size(); ++state) {
      const auto sizes = state_sizes(blocks, state);
      if (std::ranges::all_of(sizes, [](std::size_t size) { return size == 0; }))
        exist_[state_after(blocks, state)] = true;
    }
  }
}

std::size_t TextFetch::state_after(std::size_t blocks, std::size_t state) const {
  return names_.size() - first_ + (blocks - 1 - known_) * all_.size() + state;
}

std::vector<std::size_t> TextFetch::state_sizes(std::size_t blocks, std::size_t state) const {
  const auto& all = sizes_[blocks - known_].at(all_[state]);
  return all.grows ? piece_sizes(sizes_[blocks - 1 - known_].at(all_[state]).bytes, all.bytes) : all.bytes;
}

std::size_t TextFetch::with_states(std::size_t blocks) const {
  const auto has_all = [&](std::size_t after, std::size_t first, std::size_t end) {
    for (std::size_t state = first; state < end; ++state) {
      if (!exist_[state_after(after, state)]) return false;
    }
    return true;
  };
  const std::size_t along = states_.along.size();
  std::size_t out = known_;
  while (out < blocks && has_all(out + 1, 0, along)) ++out;
  while (out > known_ && !has_all(out, along, all_.size())) --out;
  return out;
}

/// Returns false if there is no room for all of them. Those that stay in the store get room before others are in
/// memory.
bool TextFetch::add_blocks(TierRequest& wanted) {
  const bool has_parts = stores_.tier->has_parts();
  TextRoom states(stores_.memory);
  if (has_parts) states.reserve(limits_.room_for_states(part_));
  const std::size_t least = has_parts ? TextBlock::filed_bytes() : 0;
  const std::size_t missing = reached_ - std::min(chain_.size(), reached_);
  if (!room_.reserve(missing * least)) return false;
  for (std::size_t i = chain_.size(); i < reached_; ++i) {
    if (!add_block(wanted, i, TextBlock::bytes(session_.hparams, part_.type) - least)) {
      if (!has_parts) return false;
      add_filed_block(wanted, i);
    }
    wanted.names.push_back(names_[i]);
  }
  return true;
}

bool TextFetch::add_block(TierRequest& wanted, std::size_t block, std::size_t bytes) {
  const auto tokens = text_.subspan(block * kBlockTokens, kBlockTokens);
  const auto make = [&] {
    new_.push_back(std::make_shared<TextBlock>(session_.account, session_.hparams, part_.type, tokens));
  };
  if (!room_.reserve(bytes, make)) return false;
  wanted.targets.emplace_back(std::shared_ptr<LayerBytes>(new_.back(), &new_.back()->rows()));
  return true;
}

void TextFetch::add_filed_block(TierRequest& wanted, std::size_t block) {
  const auto tokens = text_.subspan(block * kBlockTokens, kBlockTokens);
  auto rows = stores_.tier->filed(names_[block], TextBlock::sizes(session_.hparams, part_.type));
  wanted.targets.emplace_back(rows);
  new_.push_back(std::make_shared<TextBlock>(part_.type, tokens, std::move(rows)));
}

/// Returns false if there is no room for all of them.
bool TextFetch::add_states(TierRequest& wanted) {
  along_.assign(states_.along.size(), {});
  after_.clear();
  wanted_.clear();
  for (std::size_t state = 0; state < all_.size(); ++state) {
    const bool grows = state < along_.size();
    for (std::size_t blocks = grows ? known_ + 1 : reached_; blocks <= reached_; ++blocks) {
      if (!add_state(wanted, blocks, state, grows ? along_[state] : after_)) return false;
    }
  }
  return true;
}

bool TextFetch::add_state(TierRequest& wanted, std::size_t blocks, std::size_t state, std::vector<LayerBytesPtr>& to) {
  const auto sizes = state_sizes(blocks, state);
  std::shared_ptr<LayerBytes> bytes;
  const auto make = [&] { bytes = std::make_shared<LayerBytes>(session_.account, sizes, "states of a text"); };
  if (!room_.reserve(LayerBytes::bytes(sizes), make)) return false;
  to.push_back(bytes);
  if (bytes->bytes() == 0) return true;
  wanted.names.push_back(stores_.tier->name_of_state(names_[blocks - 1], all_[state]));
  wanted.targets.emplace_back(std::move(bytes));
  wanted_.push_back(state_after(blocks, state));
  return true;
}

/// Takes as many blocks as have room in memory, or can stay in the store. States need all blocks before them.
void TextFetch::begin_reading() {
  reached_ = with_states(found_blocks());
  if (reached_ == known_) return end();
  const auto wanted = std::make_shared<TierRequest>();
  TierRequest states;  // they get room first: blocks may stay in the store
  const bool have_room = add_states(states) && add_blocks(*wanted);
  if (!have_room && !all_.empty()) return end();
  wanted->names.insert(wanted->names.end(), states.names.begin(), states.names.end());
  wanted->targets.insert(wanted->targets.end(), states.targets.begin(), states.targets.end());
  asked_ = wanted;
  if (wanted->names.empty()) return store();  // pieces of states that are empty
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
  for (std::size_t i = 0; i < along_.size(); ++i)
    stores_.memory.put_pieces(part_.owner, text_, known_, states_.along[i], along_[i]);
  for (std::size_t i = 0; i < after_.size(); ++i)
    stores_.memory.put_fact(part_.owner, text_.first(reached_ * kBlockTokens), states_.after[i], after_[i]);
  end();
}

/// A value that could not be read counts as one that does not exist: there may be states after fewer blocks.
void TextFetch::read_less(std::size_t bad) {
  if (!stores_.tier->may_read()) return end();
  const std::size_t blocks = new_.size();
  exist_[bad < blocks ? chain_.size() - first_ : wanted_[bad - blocks]] = false;
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
