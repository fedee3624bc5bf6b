// SPDX-License-Identifier: Apache-2.0
#include "engine/known_text.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/as_size.h"
#include "base/log.h"
#include "winnow/error.h"

namespace winnow::engine {

std::vector<std::string> names_of(const StateSizes& states) {
  std::vector<std::string> out;
  for (const auto& [name, sizes] : states) out.push_back(name);
  return out;
}

KnownText::KnownText(Session::Impl& session, TextTiers stores, std::string owner, std::span<const Token> text, int most,
                     const PassLimits& limits, ElementType type)
    : account_(session.account),
      store_(stores.memory),
      tier_(stores.tier),
      owner_(std::move(owner)),
      text_(text),
      most_(most),
      chain_(store_.find(owner_, text)) {
  find(limits);
  if (most_ > tokens()) reserve_states(limits.states);
  reserve_blocks(session.hparams, type);
}

void KnownText::find(const PassLimits& limits) {
  const std::size_t most = std::min(chain_.size(), as_size(std::min(limits.first_seen, most_) / TextBlock::kTokens));
  const auto names = names_of(limits.states);
  const auto found = store_.find_facts(owner_, text_, most, names);
  if (static_cast<int>(found.blocks) <= known_) return;
  known_ = static_cast<int>(found.blocks);
  found_.clear();
  for (std::size_t i = 0; i < found.facts.size(); ++i) found_.emplace(names[i], found.facts[i]);
}

void KnownText::begin_later_pass(const PassLimits& limits) { find(limits); }

bool KnownText::reserve(std::size_t bytes, const std::function<void()>& make) {
  if (!store_.reserve(bytes)) return false;
  reserved_ += bytes;
  try {
    make();
  } catch (const MemoryError& error) {
    log().info("a text is not stored whole: {}", error.what());
    return false;
  }
  return true;
}

/// States before blocks: blocks without them would not help a method that needs them.
void KnownText::reserve_states(const StateSizes& states) {
  for (const auto& [name, sizes] : states)
    reserve(TextFact::bytes(sizes), [&] { kept_.emplace(name, std::make_shared<TextFact>(account_, sizes)); });
}

void KnownText::reserve_blocks(const model::Hparams& hparams, ElementType type) {
  constexpr auto kTokens = as_size(TextBlock::kTokens);
  const std::size_t bytes = TextBlock::bytes(hparams, type);
  for (std::size_t first = chain_.size() * kTokens; first + kTokens <= text_.size(); first += kTokens) {
    const auto tokens = text_.subspan(first, kTokens);
    if (!reserve(bytes, [&] { read_.push_back(std::make_shared<TextBlock>(account_, hparams, type, tokens)); })) break;
  }
}

int KnownText::will_store(int common, const StateSizes& states) const {
  const auto blocks = static_cast<int>(chain_.size() + read_.size());
  const int stored = std::min(common / TextBlock::kTokens, blocks) * TextBlock::kTokens;
  if (states.empty()) return stored;
  const bool has_all = std::ranges::all_of(states, [&](const auto& state) { return kept_.contains(state.first); });
  return has_all && most_ <= stored ? most_ : 0;
}

KnownText::~KnownText() { store_.release(reserved_); }

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
  for (const auto& block : read_) {
    block->copy(layer, first, from);
    first += TextBlock::kTokens;
  }
}

void KnownText::begin_observer(int layer, const policy::ObserverRequest& request, policy::Observer& observer) {
  const auto name = request.state_name();
  const auto found = found_.find(name);
  if (found != found_.end()) observer.take_state(tokens(), found->second->layer(layer));
  const auto kept = kept_.find(name);
  if (kept == kept_.end() || most_ <= tokens()) return;
  observer.keep_state(most_, kept->second->layer(layer));
  observed_.insert(name);
}

void KnownText::store() {
  std::size_t later = 0;  // states that a second pass writes
  for (const auto& [name, state] : kept_) later += observed_.contains(name) ? 0 : state->bytes();
  store_.release(reserved_ - later);
  reserved_ = later;
  for (auto& block : read_) chain_.push_back(std::move(block));
  read_.clear();
  store_.put(owner_, chain_);
  if (tier_ != nullptr) tier_->keep(owner_, chain_);
  for (const auto& name : observed_)
    store_.put_fact(owner_, text_.first(as_size(most_)), name, std::move(kept_.extract(name).mapped()));
  observed_.clear();
}

}  // namespace winnow::engine
