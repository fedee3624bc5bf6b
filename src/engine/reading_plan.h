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

/// Prompts that begin alike, by their sizes.
struct ReadingSizes {
  int text = 0;                       ///< tokens that all prompts begin with
  std::vector<int> questions = {0};   ///< tokens after it, of a prompt each
  int asked = 0;                      ///< of a text without questions, the last tokens that are one; 0: not known
  std::optional<PastSize> past = {};  ///< set: the prompts come after that, and are read in one pass
};

/// [prompt][cache of the second pass]
using Drafts = std::vector<std::vector<std::vector<Token>>>;

/// How prompts are read. One pass fills most caches. Two are needed by methods with a draft (policy::Draft), and where
/// the entries of all layers are ranked together (SelectionParts::heads_of_all_layers): what the first pass has kept
/// for a drafter generates the draft and goes, rankings stay, and the second pass fills these caches.
class ReadingPlan {
 public:
  /// A cache that the second pass fills.
  struct Again {
    std::size_t cache = 0;
    int drafted = 0;  ///< tokens of the draft, at most; 0: there is none, entries of all layers are ranked together
  };

  /// Throws UsageError when a budget is too small for its method, and for a method without the calibration it needs.
  ReadingPlan(const Session::Impl& session, const ReadingSizes& sizes, std::span<const CacheOptions> caches);
  /// One prompt without questions, which is kept in one way.
  ReadingPlan(const Session::Impl& session, int tokens, const CacheOptions& keep);

  const PrefillPlan& first() const { return first_; }
  bool has_second() const { return second_.has_value(); }
  /// The second pass, when the drafts are known. REQUIRES: has_second()
  PrefillPlan second(const Session::Impl& session, const Drafts& drafts) const;
  std::span<const Again> again() const { return again_; }

  /// The most that is in use at a time.
  const ReadingBytes& bytes() const { return bytes_; }
  /// Rows that pass through all layers, each time that they do; of drafts, where none ends early.
  std::int64_t rows() const;
  /// Rows of chunks, without repeats, ascending.
  std::vector<int> chunk_sizes() const;

 private:
  ReadingBytes bytes_of(const Session::Impl& session) const;

  std::vector<Again> again_;
  PrefillPlan first_;
  std::optional<PrefillPlan> second_;  ///< with drafts of any tokens
  ReadingBytes bytes_;
};

}  // namespace winnow::engine
