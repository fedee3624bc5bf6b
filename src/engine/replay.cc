// SPDX-License-Identifier: Apache-2.0
#include "engine/replay.h"

#include <algorithm>
#include <string>

#include "base/as_size.h"

namespace winnow::engine {

namespace {

std::vector<Token> words(const std::string& text, const model::Vocab& vocab) {
  return vocab.tokenize(text, ControlTokens::as_text);
}

}  // namespace

int rows_before_copy(const policy::Passage& passage, const model::Vocab& vocab) {
  return static_cast<int>(words(passage.ask, vocab).size() + words(passage.reply, vocab).size()) + passage.cue;
}

int rows_of(const policy::Passage& passage, std::span<const Token> draft, const model::Vocab& vocab) {
  const auto drafted = static_cast<int>(std::min(draft.size(), as_size(passage.drafted)));
  return rows_before_copy(passage, vocab) + passage.count + drafted;
}

std::vector<Token> tokens_of(const policy::Passage& passage, std::span<const Token> prompt,
                             std::span<const Token> draft, const model::Vocab& vocab) {
  std::vector<Token> out = words(passage.ask, vocab);
  const auto append = [&out](std::span<const Token> more) { out.insert(out.end(), more.begin(), more.end()); };
  const auto first = as_size(passage.first);
  const auto cue = as_size(passage.cue);
  append(prompt.subspan(first - cue, cue));
  append(words(passage.reply, vocab));
  append(prompt.subspan(first, as_size(passage.count)));
  append(draft.first(std::min(draft.size(), as_size(passage.drafted))));
  return out;
}

}  // namespace winnow::engine
