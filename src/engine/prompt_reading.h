// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "engine/prefill.h"
#include "engine/session_impl.h"

namespace winnow::engine {

/// How caches are filled from prompts.
struct Passes {
  std::vector<CacheOptions> first;   ///< [cache] what the first pass reads for: in the place of a draft, its drafter
  std::vector<std::size_t> again;    ///< caches that a second pass fills
  std::vector<CacheOptions> second;  ///< theirs
};

/// Reads prompts like a Prefill, and twice where a method needs it: for its draft (policy::Draft), or because the
/// entries of all layers are ranked together (SelectionParts::heads_of_all_layers). Of the first pass, what it has kept
/// for a drafter generates the draft, a token at a time, and goes; rankings stay. The second pass fills these caches.
class PromptReading {
 public:
  /// `first` is what the first pass runs on; a second one runs on the session, too. `bytes` is what reading takes at
  /// most. After a past there is one pass.
  PromptReading(Session::Impl& session, PrefillContext first, std::size_t bytes, std::span<const Token> text,
                std::span<const std::vector<Token>> questions, std::span<const CacheOptions> caches);
  PromptReading(const PromptReading&) = delete;
  PromptReading& operator=(const PromptReading&) = delete;
  ~PromptReading() = default;

  /// As Prefill::advance(), or one token of a draft.
  bool advance();
  /// The share of all passes that is done.
  double done() const;
  /// A prompt's caches as they are now, in no order, with those of drafters.
  std::vector<const Cache*> caches(std::size_t prompt) const;
  /// As those of Prefill.
  std::vector<Cache> take_caches(std::size_t prompt);
  std::vector<float> logits(std::size_t prompt) { return prefill_->logits(prompt); }
  void text_logits(RowRange tokens, std::span<float> out) { prefill_->text_logits(tokens, out); }
  std::vector<Prefilled> run();

 private:
  std::vector<PromptSize> prompts() const;
  AllShown begin_rankings() const;
  std::function<void(double)> progress_of(std::function<void(double)> all) const;
  void end_first_pass();
  bool draft();
  void begin_second_pass();

  Session::Impl& session_;
  std::size_t bytes_;
  int asked_;  ///< PrefillContext::asked
  std::vector<Token> text_;
  std::vector<std::vector<Token>> questions_;
  Passes passes_;
  AllShown shown_;  ///< to caches of the second pass
  int pass_ = 0;
  std::optional<Prefill> prefill_;                       ///< none while drafts are generated
  std::vector<std::vector<std::optional<Cache>>> kept_;  ///< [prompt][cache] by the first pass, when it is over
  std::vector<std::vector<float>> logits_;               ///< [prompt][n_vocab] what a draft begins with
  std::vector<float> next_;                              ///< [n_vocab] what the one in work goes on with
  std::size_t drafts_done_ = 0;                          ///< prompt by prompt, of caches of the second pass
};

/// Rows that pass through all layers one after the other or together while such prompts are read, each entry divided
/// into chunks of its own: of both passes the `shared` ones, those of each question and each passage, and single rows
/// of drafts, where none ends early.
std::vector<int> reading_rows(const Session::Impl& session, int shared, std::span<const PromptSize> prompts,
                              std::span<const CacheOptions> caches);

/// Bytes of both passes: see prefill_bytes().
ReadingBytes reading_bytes(const Session::Impl& session, int shared, int rows, std::span<const PromptSize> prompts,
                           std::span<const CacheOptions> caches);

}  // namespace winnow::engine
