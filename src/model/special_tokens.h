// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/marked_text.h"
#include "winnow/model.h"

namespace winnow::model {

/// A token recognised by its name in a text before the rest is tokenized.
struct SpecialToken {
  Token token;
  std::string name;                 ///< not empty
  bool takes_space_before = false;  ///< consumes adjacent white space
  bool takes_space_after = false;
};

/// A special token in a text, or the segment of text between two of them.
struct TextSegment {
  Token token = -1;            ///< negative: a segment
  std::string_view text = {};  ///< text consumed by the token, or the segment
};

/// Splits texts at special tokens as libllama does: longer names first, and no overlaps. libllama's time is quadratic
/// in the tokens found; this is linear in the text.
class SpecialTokens {
 public:
  /// `tokens` in libllama's order, which matters for overlapping names of equal length.
  explicit SpecialTokens(std::vector<SpecialToken> tokens);

  /// Segments are not empty and not adjacent.
  std::vector<TextSegment> split(std::string_view text) const;
  /// The text with a zero byte in each token name that overlaps input, so that split() takes the name for plain text.
  std::string masked(const MarkedText& text) const;

 private:
  struct Range {
    const SpecialToken* token;  ///< null: text
    std::size_t begin;
    std::size_t end;
  };
  /// A stretch of text with overlapping names, or with white space that may belong to them, so that only some of the
  /// tokens may be there.
  struct Cluster {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::set<std::size_t> tokens = {};
  };

  /// Calls `found(token, at)` for each occurrence of a token's name.
  template <class Found>
  void find_all(std::string_view text, const Found& found) const;
  void add(Cluster& cluster, std::size_t token, std::string_view text, std::size_t at, std::vector<Range>& to) const;
  /// Resolves a cluster, and adds its tokens with the text before them.
  void resolve(const Cluster& cluster, std::string_view text, std::vector<Range>& to) const;
  static std::vector<Range> split_at(const SpecialToken& token, std::string_view text, std::span<const Range> ranges);

  static constexpr int kNone = -1;
  /// Trie node; one more character of a name. The root is 0.
  struct Node {
    std::map<char, int> next = {};
    int token = kNone;  ///< token whose name ends here
  };

  std::vector<SpecialToken> tokens_;
  bool some_take_space_before_ = false;  ///< some token consumes the white space before it
  std::vector<Node> nodes_;
};

}  // namespace winnow::model
