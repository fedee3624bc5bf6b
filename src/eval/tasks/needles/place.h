// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/as_size.h"
#include "eval/tasks/needles/wording.h"
#include "winnow/model.h"

/// Where the sentences of needles/… stand among others.
namespace winnow::eval::needles {

/// The words of texts, which begin again after the last one.
class Haystack {
 public:
  /// Throws InputError where there is no word.
  explicit Haystack(const std::string& text);

  const std::string& word(std::size_t at) const { return words_[at % words_.size()]; }
  /// The first word from here on that begins a sentence; after one round, whatever is there. REQUIRES: at > 0.
  std::size_t sentence_from(std::size_t at) const;
  std::size_t size() const { return words_.size(); }

 private:
  std::vector<std::string> words_;
};

/// Where the first answer stands among the multiples of so many tokens, counted from the prompt's first one.
struct Borders {
  enum class Place : std::uint8_t {
    at,   ///< its middle is at one of them
    off,  ///< its middle is halfway between two of them
  };
  int tokens = 1;  ///< REQUIRES: > 0
  Place place = Place::at;
};

/// What a prompt is to be.
struct Wanted {
  int length = 0;  ///< tokens of the prompt, at most
  PromptFormat format = PromptFormat::chat;
  std::vector<int> depths;  ///< of the sentences, percent of the haystack
  std::optional<Borders> borders;
};

/// Words before `begin` with which a prompt with borders may begin.
inline std::size_t words_before(int border_tokens) { return 3 * as_size(border_tokens); }

/// A prompt of words from `begin` on, as long as allowed with what the answer begins with, and with the sentences where
/// sentences end. Without a chat template the question ends with the answer's beginning. Throws InputError
/// where the sentences and the question are longer than allowed. REQUIRES: `begin` is at least words_before() where
/// there are borders.
PromptText hide(const Model& model, const Haystack& haystack, std::size_t begin, const Hidden& hidden,
                const Wanted& wanted);

/// Tokens [begin, end) of a prompt.
struct TokenRange {
  int begin = 0;
  int end = 0;
};
/// Those that a part of its text is in, with the space before it. REQUIRES: it is there, behind
/// others.
TokenRange tokens_with(const Model& model, const PromptText& prompt, const std::string& part);

/// How far the middle of a range is from the nearest multiple of `every` tokens.
double to_border(const TokenRange& range, int every);

}  // namespace winnow::eval::needles
