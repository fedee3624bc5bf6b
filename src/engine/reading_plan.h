// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/prefill_plan.h"
#include "winnow/session.h"

namespace winnow::engine {

/// Sizes of prompts with a common beginning.
struct ReadingSizes {
  int text = 0;                       ///< tokens of the common beginning
  int known = 0;                      ///< the first of these, whose keys and values are known
  std::vector<int> questions = {0};   ///< tokens after it, one for each prompt
  int asked = 0;                      ///< last tokens of a text without questions that are the question; 0: not known
  std::optional<PastSize> past = {};  ///< text before the prompts, which are then read in one pass
};

/// Sizes of a text and the questions after it. A single question is read as the end of the text: methods see the same,
/// and chunks and blocks go across.
ReadingSizes sizes_of(std::size_t text, std::span<const std::vector<Token>> questions);

/// [prompt][cache of the second pass]
using Drafts = std::vector<std::vector<std::vector<Token>>>;

/// Plan for reading prompts. One pass fills most caches. Two passes are needed for methods with a draft
/// (policy::Draft), and for methods that rank the entries of all layers together (SelectionParts::heads_of_all_layers).
/// In the first pass a drafter's cache is filled, generates the draft and is freed, and rankings are collected. The
/// second pass fills the caches of these methods.
class ReadingPlan {
 public:
  /// A cache that the second pass fills.
  struct Again {
    std::size_t cache = 0;
    int drafted = 0;  ///< the most tokens of the draft; 0: no draft, entries of all layers are ranked together
  };

  /// Throws UsageError if a budget is too small for its method, or a calibration that a method needs is missing.
  ReadingPlan(const Session::Impl& session, const ReadingSizes& sizes, std::span<const CacheOptions> caches);
  /// One prompt without questions, for one cache.
  ReadingPlan(const Session::Impl& session, int tokens, const CacheOptions& keep);

  const PrefillPlan& first() const { return first_; }
  bool has_second() const { return second_.has_value(); }
  /// The second pass with these drafts over a text of which the first `known` tokens are known, at least as many as in
  /// the first pass. REQUIRES: has_second().
  PrefillPlan second(const Session::Impl& session, const Drafts& drafts, int known) const;
  std::span<const Again> again() const { return again_; }

  /// First row of the prompts that an observer without a state must see, in any pass.
  int first_seen(const Session::Impl& session) const;
  /// Bytes of the observers' states after `rows` rows, in all passes.
  StateSizes states(const Session::Impl& session, int rows) const;
  /// The most bytes in use at a time.
  const ReadingBytes& bytes() const { return bytes_; }
  /// Rows that pass through all layers, counted in each pass; drafts have their full length.
  std::int64_t rows() const;
  /// Distinct sizes of chunks in rows, ascending.
  std::vector<int> chunk_sizes() const;

 private:
  ReadingBytes bytes_of(const Session::Impl& session) const;

  std::vector<Again> again_;
  PrefillPlan first_;
  std::optional<PrefillPlan> second_;  ///< with placeholder drafts
  ReadingBytes bytes_;
};

}  // namespace winnow::engine
