// SPDX-License-Identifier: Apache-2.0
#include "engine/known_text.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/as_size.h"
#include "base/log.h"
#include "winnow/error.h"

namespace winnow::engine {

KnownText::KnownText(Session::Impl& session, TextTiers stores, std::string owner, std::span<const Token> text, int most,
                     ElementType type)
    : store_(stores.memory),
      tier_(stores.tier),
      owner_(std::move(owner)),
      chain_(store_.find(owner_, text)),
      known_(std::min(static_cast<int>(chain_.size()), most / TextBlock::kTokens)) {
  constexpr auto kTokens = as_size(TextBlock::kTokens);
  const std::size_t bytes = TextBlock::bytes(session.hparams, type);
  for (std::size_t first = chain_.size() * kTokens; first + kTokens <= text.size(); first += kTokens) {
    if (!store_.reserve(bytes)) break;
    reserved_ += bytes;
    try {
      read_.push_back(
          std::make_shared<TextBlock>(session.account, session.hparams, type, text.subspan(first, kTokens)));
    } catch (const MemoryError& error) {
      log().info("a text is stored up to token {}: {}", first, error.what());
      break;
    }
  }
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

void KnownText::store() {
  store_.release(std::exchange(reserved_, 0));
  for (auto& block : read_) chain_.push_back(std::move(block));
  read_.clear();
  store_.put(owner_, chain_);
  if (tier_ != nullptr) tier_->keep(owner_, chain_);
}

}  // namespace winnow::engine
