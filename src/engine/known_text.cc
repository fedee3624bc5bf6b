// SPDX-License-Identifier: Apache-2.0
#include "engine/known_text.h"

#include <algorithm>
#include <numeric>
#include <ranges>
#include <utility>

#include "base/as_size.h"
#include "base/log.h"
#include "winnow/error.h"

namespace winnow::engine {

KnownText::KnownText(Session::Impl& session, TextTiers stores, StoredPart part, std::span<const Token> text,
                     std::size_t shared, const PassLimits& limits)
    : account_(session.account),
      store_(stores.memory),
      tier_(stores.tier),
      part_(std::move(part)),
      text_(text),
      chain_(store_.find(part_.owner, text)),
      room_(store_) {
  if (tier_ != nullptr) names_ = tier_->names(part_.owner, text);
  find(limits);
  reserve_states(limits, std::max(shared, chain_.size()));
  reserve_blocks(session.hparams, limits);
  use_filed_blocks();
}

void KnownText::find(const PassLimits& limits) {
  const std::size_t most = std::min(blocks_in_memory(), as_size(limits.most(part_) / TextBlock::kTokens));
  const auto names = names_of(limits.states(part_.most));
  const auto found = store_.find_facts(part_.owner, text_, most, names);
  if (static_cast<int>(found.blocks) <= known_) return;
  known_ = static_cast<int>(found.blocks);
  found_.clear();
  for (std::size_t i = 0; i < found.after.size(); ++i) found_.emplace(names.after[i], found.after[i]);
  growing_.clear();
  for (std::size_t i = 0; i < found.along.size(); ++i)
    growing_.emplace(names.along[i], GrowingState(ends_of(limits, names.along[i]), found.along[i]));
}

void KnownText::begin_later_pass(const PassLimits& limits) { find(limits); }

/// Before blocks: blocks without states would not help a method that needs them.
void KnownText::reserve_states(const PassLimits& limits, std::size_t shared) {
  const auto places = places_of_states(limits, shared);
  for (const int rows : places) {
    for (const auto& [name, size] : limits.states(rows)) {
      if (size.grows && rows != *places.rbegin()) continue;
      room_.reserve(LayerBytes::bytes(size.bytes), [&, &name = name, &size = size] {
        kept_[rows].emplace(name, std::make_shared<LayerBytes>(account_, size.bytes, "states of a text"));
        if (size.grows && !growing_.contains(name)) growing_.emplace(name, GrowingState(ends_of(limits, name), {}));
      });
    }
  }
}

/// Not after the text's last token: a chunk that ends there, such as one that is repeated, is longer in a longer text.
std::set<int> KnownText::places_of_states(const PassLimits& limits, std::size_t shared) const {
  const int same = limits.most(part_) / TextBlock::kTokens * TextBlock::kTokens;
  const auto whole = static_cast<int>(text_.size() / kBlockTokens) * TextBlock::kTokens;
  const int branch = static_cast<int>(shared) * TextBlock::kTokens;
  std::set<int> places;
  for (const int rows : {same, whole, branch}) {
    if (rows > tokens() && rows < static_cast<int>(text_.size())) places.insert(rows);
  }
  return places;
}

void KnownText::reserve_blocks(const model::Hparams& hparams, const PassLimits& limits) {
  const std::size_t bytes = TextBlock::bytes(hparams, part_.type);
  TextRoom states(store_);
  if (tier_ != nullptr && tier_->has_parts()) states.reserve(limits.room_for_states(part_));
  for (std::size_t first = chain_.size() * kBlockTokens; first + kBlockTokens <= text_.size(); first += kBlockTokens) {
    const auto make = [&] {
      const auto tokens = text_.subspan(first, kBlockTokens);
      read_.push_back(std::make_shared<TextBlock>(account_, hparams, part_.type, tokens));
    };
    if (!room_.reserve(bytes, make) && !add_filed_block(hparams, text_.subspan(first, kBlockTokens))) break;
  }
}

bool KnownText::add_filed_block(const model::Hparams& hparams, std::span<const Token> tokens) {
  if (tier_ == nullptr || !tier_->has_parts()) return false;
  auto rows = tier_->filed(names_[chain_.size() + read_.size()], TextBlock::sizes(hparams, part_.type));
  bool has_begun = false;
  if (!tier_->write([&] { has_begun = rows->begin(); }) || !has_begun) return false;
  read_.push_back(std::make_shared<TextBlock>(part_.type, tokens, std::move(rows)));
  return true;
}

/// A tier drops what was not used for the longest time, also while it is read.
void KnownText::use_filed_blocks() const {
  std::vector<TierValue> used;
  for (std::size_t i = 0; i < as_size(known_); ++i) {
    if (chain_[i]->filed() != nullptr) used.push_back({names_[i], chain_[i]->filed()});
  }
  if (!used.empty()) tier_->keep(std::move(used));
}

std::size_t KnownText::blocks_in_memory() const {
  const auto is_new = [](const TextBlock& block) { return block.filed() != nullptr && block.filed()->is_new(); };
  const auto in_chain = std::ranges::find_if(chain_, [&](const auto& block) { return is_new(*block); });
  const auto in_read = std::ranges::find_if(read_, [&](const auto& block) { return is_new(*block); });
  const auto of_chain = as_size(in_chain - chain_.begin());
  return of_chain < chain_.size() ? of_chain : of_chain + as_size(in_read - read_.begin());
}

std::vector<std::vector<std::size_t>> KnownText::ends_of(const PassLimits& limits, const std::string& name) const {
  std::vector<std::vector<std::size_t>> out;
  for (int rows = 0; rows < static_cast<int>(text_.size()); rows += TextBlock::kTokens)
    out.push_back(limits.states(rows).at(name).bytes);
  return out;
}

int KnownText::will_store(int common, const FactNames& states) const {
  const auto blocks = static_cast<int>(blocks_in_memory());
  int most = std::min(common / TextBlock::kTokens, blocks) * TextBlock::kTokens;
  const auto has = [](const auto& kept, const auto& names) {
    return std::ranges::all_of(names, [&](const auto& name) { return kept.second.contains(name); });
  };
  if (!states.along.empty())
    most = kept_.empty() || !has(*kept_.rbegin(), states.along) ? 0 : std::min(most, kept_.rbegin()->first);
  if (states.after.empty()) return most;
  for (const auto& kept : std::views::reverse(kept_)) {
    if (kept.first <= most && has(kept, states.after)) return kept.first;
  }
  return 0;
}

void KnownText::put(int layer, RowRange rows, cache::LayerScratch& to) const {
  const int first = rows.first / TextBlock::kTokens;
  const int end = (rows.first + rows.count + TextBlock::kTokens - 1) / TextBlock::kTokens;
  std::vector<std::int32_t> positions(as_size((end - first) * TextBlock::kTokens));
  std::iota(positions.begin(), positions.end(), first * TextBlock::kTokens);
  to.truncate(first * TextBlock::kTokens);
  to.extend(positions);
  for (int i = first; i < end; ++i) chain_[as_size(i)]->put(layer, i * TextBlock::kTokens, to);
}

void KnownText::copy(int layer, const cache::LayerScratch& from) {
  int first = static_cast<int>(chain_.size()) * TextBlock::kTokens;
  for (auto block = read_.begin(); block != read_.end(); ++block) {
    const auto copy = [&] { (*block)->copy(layer, first, from); };
    if ((*block)->filed() == nullptr) {
      copy();
    } else if (!tier_->write(copy)) {
      read_.erase(block, read_.end());
      return;
    }
    first += TextBlock::kTokens;
  }
}

void KnownText::begin_observer(int layer, const policy::ObserverRequest& request, policy::Observer& observer) {
  const auto name = request.state_name();
  const auto found = found_.find(name);
  if (found != found_.end()) observer.take_state(tokens(), found->second->layer(layer));
  const auto growing = growing_.find(name);
  if (growing != growing_.end() && known_ > 0) observer.take_state(tokens(), growing->second.joined(layer, known_));
  for (const auto& [rows, states] : kept_) {
    const auto kept = states.find(name);
    if (kept == states.end() || rows <= tokens()) continue;
    if (std::exchange(observed_.try_emplace({rows, name}, -1).first->second, layer) == layer) continue;
    observer.keep_state(rows, kept->second->layer(layer));
  }
}

/// A second pass writes the states that the first one has not observed. New blocks in the tier can be used when its
/// threads have stored them.
void KnownText::store() {
  for (auto& block : read_) {
    if (block->filed() == nullptr) room_.release(block->bytes());
    chain_.push_back(std::move(block));
  }
  read_.clear();
  store_.put(part_.owner, std::span(chain_).first(blocks_in_memory()));
  for (const auto& [place, layer] : observed_) store_state(place.first, place.second);
  if (tier_ != nullptr) keep_in_tier();
  for (const auto& [place, layer] : observed_) kept_.at(place.first).erase(place.second);
  observed_.clear();
}

void KnownText::store_state(int rows, const std::string& name) {
  const auto& state = kept_.at(rows).at(name);
  room_.release(state->bytes());
  const auto growing = growing_.find(name);
  if (growing == growing_.end()) return store_.put_fact(part_.owner, text_.first(as_size(rows)), name, state);
  const std::size_t first = growing->second.pieces().size();
  try {
    growing->second.add(account_, *state);
  } catch (const MemoryError& error) {
    log().info("a text is not stored whole: {}", error.what());
  }
  store_.put_pieces(part_.owner, text_, first, name, growing->second.pieces().subspan(first));
}

void KnownText::keep_in_tier() const {
  std::vector<TierValue> values;
  for (std::size_t i = 0; i < chain_.size(); ++i) {
    const auto& block = chain_[i];
    if (block->filed() != nullptr) {
      values.push_back({names_[i], block->filed()});
    } else {
      values.push_back({names_[i], LayerBytesPtr(block, &block->rows())});
    }
  }
  const auto add = [&](int rows, const std::string& name, const LayerBytesPtr& state) {
    const auto blocks = as_size(rows / TextBlock::kTokens);
    if (blocks <= chain_.size() && state->bytes() > 0)
      values.push_back({tier_->name_of_state(names_[blocks - 1], name), state});
  };
  for (const auto& [name, state] : found_) add(tokens(), name, state);
  for (const auto& [place, layer] : observed_) {
    if (!growing_.contains(place.second)) add(place.first, place.second, kept_.at(place.first).at(place.second));
  }
  for (const auto& [name, state] : growing_) {
    int rows = 0;
    for (const auto& piece : state.pieces()) add(rows += TextBlock::kTokens, name, piece);
  }
  tier_->keep(std::move(values));
}

}  // namespace winnow::engine
