// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "cache/element.h"
#include "engine/text_store.h"
#include "engine/text_tier.h"

namespace winnow::engine {

inline constexpr auto kBlockTokens = static_cast<std::size_t>(TextBlock::kTokens);

/// Stores of full keys and values, which outlive readings.
struct TextTiers {
  TextStore& memory;
  TextTier* tier = nullptr;  ///< null: only memory
  TextType type = TextType::exact;
};

/// A beginning of a text that may be taken from stores.
struct StoredPart {
  std::string owner;
  int most = 0;                         ///< tokens; whole blocks
  ElementType type = ElementType::f16;  ///< of stored keys and values
};

/// Size of an observer's state after some rows.
struct StateSize {
  std::vector<std::size_t> bytes;  ///< of each layer
  bool grows = false;              ///< it begins with the state after fewer rows
};
/// By the state's name.
using StateSizes = std::map<std::string, StateSize>;

inline FactNames names_of(const StateSizes& states) {
  FactNames out;
  for (const auto& [name, size] : states) (size.grows ? out.along : out.after).push_back(name);
  return out;
}

/// Limits of what a pass takes of a stored part.
struct PassLimits {
  int first_seen = 0;  ///< first row that an observer without a state must see
  /// Sizes of the observers' states after some rows. Tokens are known only up to where there are all of these states.
  std::function<StateSizes(int rows)> states = [](int) { return StateSizes(); };

  /// Tokens of a part that may be known.
  int most(const StoredPart& part) const { return first_seen < part.most ? first_seen : part.most; }
  /// Bytes of memory that blocks which can stay in a tier leave to a text's states, for the three places at most where
  /// those are stored that do not grow.
  std::size_t room_for_states(const StoredPart& part) const {
    std::size_t out = 0;
    for (const auto& [name, size] : states(part.most)) out += (size.grows ? 1 : 3) * LayerBytes::bytes(size.bytes);
    return out;
  }
};

}  // namespace winnow::engine
