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

/// Placement of the sentences of needles/… among others.
namespace winnow::eval::needles {

/// The words of texts, repeated endlessly.
class Haystack {
 public:
  /// Throws InputError for a text without words.
  explicit Haystack(const std::string& text);

  const std::string& word(std::size_t at) const { return words_[at % words_.size()]; }
  /// The first word at or after `at` that begins a sentence; after one round, any word. REQUIRES: at > 0.
  std::size_t sentence_from(std::size_t at) const;
  std::size_t size() const { return words_.size(); }

 private:
  std::vector<std::string> words_;
};

/// The place of the first answer relative to multiples of `tokens`, counted from the prompt's first token.
struct Borders {
  enum class Place : std::uint8_t {
    at,   ///< its middle is at a multiple
    off,  ///< its middle is halfway between two multiples
  };
  int tokens = 1;  ///< REQUIRES: > 0
  Place place = Place::at;
};

/// Properties of the prompt to make.
struct Wanted {
  int length = 0;  ///< tokens of the prompt, at most
  PromptFormat format = PromptFormat::chat;
  std::vector<int> depths;  ///< of the sentences, percent of the haystack
  std::optional<Borders> borders;
};

/// Number of words before `begin` that a prompt with borders may use.
inline std::size_t words_before(int border_tokens) { return 3 * as_size(border_tokens); }

/// A prompt of the words from `begin` on, with the hidden sentences at ends of sentences. Together with the beginning
/// of the answer, it is as long as allowed. Without a chat template, the question ends with the answer's beginning.
/// Throws InputError if sentences and question are longer than allowed. REQUIRES: with borders, `begin` is at least
/// words_before().
PromptText hide(const Model& model, const Haystack& haystack, std::size_t begin, const Hidden& hidden,
                const Wanted& wanted);

/// Tokens [begin, end) of a prompt.
struct TokenRange {
  int begin = 0;
  int end = 0;
};
/// The tokens that contain a part of the prompt's text and the space before it. REQUIRES: the prompt has this part, and
/// not at its beginning.
TokenRange tokens_with(const Model& model, const PromptText& prompt, const std::string& part);

/// Distance of the middle of a range from the nearest multiple of `every` tokens.
double to_border(const TokenRange& range, int every);

}  // namespace winnow::eval::needles
