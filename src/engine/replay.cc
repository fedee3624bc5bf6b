// SPDX-License-Identifier: Apache-2.0
#include "engine/replay.h"

#include <algorithm>

#include "base/as_size.h"
#include "engine/layers.h"

namespace winnow::engine {

namespace {

std::vector<Token> words(const std::string& text, const model::Vocab& vocab) {
  return vocab.tokenize(text, ControlTokens::as_text);
}

/// Then caches that ask for the same may get different tokens.
bool has_draft(const policy::Replay& replay) {
  return std::any_of(replay.passages.begin(), replay.passages.end(),
                     [](const policy::Passage& passage) { return passage.drafted > 0; });
}

}  // namespace

int rows_of(const policy::Passage& passage, const model::Vocab& vocab) {
  return static_cast<int>(words(passage.ask, vocab).size() + words(passage.reply, vocab).size()) + passage.cue +
         passage.count + passage.drafted;
}

policy::Replay replay_of(const CacheOptions& options, const model::Hparams& hparams, int tokens) {
  const auto& method = options.spec.method();
  if (!method.reading.replay) return {};
  const int budget = budget_entries(options, hparams, tokens);
  if (tokens <= budget) return {};
  return method.reading.replay.call(prompt_of(hparams.layer(first_global(hparams)), tokens), budget);
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

int ReplaySize::all() const {
  int rows = 0;
  for (const auto& passage : passages) rows += passage.rows;
  return rows;
}

int ReplaySize::longest() const {
  int most = 0;
  for (const auto& passage : passages) most = std::max(most, passage.rows);
  return most;
}

ReplaySize replay_size(std::span<const CacheOptions> caches, const model::Hparams& hparams, const model::Vocab& vocab,
                       int tokens) {
  std::vector<policy::Replay> counted;  // what several caches want is read once
  ReplaySize size;
  for (const auto& options : caches) {
    const auto replay = replay_of(options, hparams, tokens);
    if (!has_draft(replay) && std::find(counted.begin(), counted.end(), replay) != counted.end()) continue;
    for (const auto& passage : replay.passages) size.passages.push_back({rows_of(passage, vocab), passage.recorded});
    if (!replay.passages.empty()) ++size.times;
    counted.push_back(replay);
  }
  return size;
}

}  // namespace winnow::engine
