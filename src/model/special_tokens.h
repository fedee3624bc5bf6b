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

/// A token that is found in a text by its name, before the rest of the text is tokenized.
struct SpecialToken {
  Token token;
  std::string name;                 ///< not empty
  bool takes_space_before = false;  ///< white space next to it belongs to it
  bool takes_space_after = false;
};

/// A special token of a text, or a part of the text between two of them.
struct TextPiece {
  Token token = -1;            ///< negative: the part
  std::string_view text = {};  ///< that the token has taken, or that is the part
};

/// Splits texts at special tokens as libllama does: tokens of longer names come first, and what one has taken, another
/// does not get. libllama's own time grows with the square of the tokens that it finds; here it grows with the text.
class SpecialTokens {
 public:
  /// In the order of libllama, which matters for tokens of one length that overlap.
  explicit SpecialTokens(std::vector<SpecialToken> tokens);

  /// The parts are not empty, and no two of them stand side by side.
  std::vector<TextPiece> split(std::string_view text) const;
  /// The text with a zero byte in each name of a token that has a byte of the input: split() then takes it for text.
  std::string masked(const MarkedText& text) const;

 private:
  struct Range {
    const SpecialToken* token;  ///< null: text
    std::size_t begin;
    std::size_t end;
  };
  /// A stretch of text with names that overlap, or with white space that may belong to them: not all of the tokens may
  /// be there.
  struct Cluster {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::set<std::size_t> tokens = {};
  };

  /// Calls `found(token, at)` for each place of the text where the name of a token is.
  template <class Found>
  void find_all(std::string_view text, const Found& found) const;
  void add(Cluster& cluster, std::size_t token, std::string_view text, std::size_t at, std::vector<Range>& to) const;
  /// Decides which tokens of a cluster are there, and adds them with the text before them.
  void resolve(const Cluster& cluster, std::string_view text, std::vector<Range>& to) const;
  static std::vector<Range> split_at(const SpecialToken& token, std::string_view text, std::span<const Range> ranges);

  static constexpr int kNone = -1;
  /// A character more of a name. The root is 0.
  struct Node {
    std::map<char, int> next = {};
    int token = kNone;  ///< whose name ends here
  };

  std::vector<SpecialToken> tokens_;
  bool some_take_space_before_ = false;  ///< white space may then belong to what comes after it
  std::vector<Node> nodes_;
};

}  // namespace winnow::model
