// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace winnow::engine {

/// One state of a grammar's rules. Characters are parsed byte by byte, as UTF-8.
struct GrammarState {
  enum class Kind : std::uint8_t {
    byte,  ///< reads a byte from `first` to `last`
    call,  ///< goes through the rule `other`
    fork,  ///< continues at `next` or at `other` without reading a byte
    end,   ///< ends its rule
  };
  static constexpr std::int32_t kNone = -1;

  Kind kind = Kind::fork;
  unsigned char first = 0;
  unsigned char last = 0;
  std::int32_t next = kNone;
  std::int32_t other = kNone;
};

/// A grammar in GBNF, llama.cpp's notation, without its token syntax `<…>`. Immutable.
class GrammarRules {
 public:
  /// Throws UsageError for an invalid grammar, one without a rule `root`, or one that is too large.
  explicit GrammarRules(std::string_view text);

  const GrammarState& state(std::int32_t i) const { return states_[i]; }
  std::int32_t root() const { return root_; }
  /// Number of rules, unnamed ones included.
  std::size_t count() const { return begins_.size(); }
  /// First state of a rule.
  std::int32_t begin(std::int32_t rule) const { return begins_[rule]; }

 private:
  std::vector<GrammarState> states_;
  std::vector<std::int32_t> begins_;  ///< [rule]
  std::int32_t root_ = GrammarState::kNone;
};

}  // namespace winnow::engine
