// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/prompt_reading.h"
#include "engine/reading_plan.h"
#include "engine/session_impl.h"
#include "engine/stored_part.h"
#include "engine/text_store.h"
#include "engine/text_tier.h"
#include "winnow/session.h"

namespace winnow::engine {

/// Texts that a session or a scheduler stores in all tiers.
class KeptTexts {
 public:
  /// Throws UsageError for a place without memory, and what store::open_values() throws.
  KeptTexts(const Session::Impl& session, const TextOptions& options);

  TextStore& memory() { return memory_; }
  const TextStore& memory() const { return memory_; }
  /// Null if texts are only in memory.
  TextTier* tier() const { return tier_.get(); }
  TextTiers tiers() { return {memory_, tier_.get(), type_}; }
  /// Tells the user, once, if texts of so many bytes are not stored whole.
  void check_room(int tokens, std::size_t bytes);

 private:
  TextStore memory_;
  std::unique_ptr<TextTier> tier_;
  TextType type_;
  bool has_told_ = false;
};

/// Takes a session's texts away during its lifetime, for measurements, which read everything.
class WithoutTexts {
 public:
  explicit WithoutTexts(Session& session) : of_session_(parts_of(session).texts), texts_(std::move(of_session_)) {}
  WithoutTexts(const WithoutTexts&) = delete;
  WithoutTexts& operator=(const WithoutTexts&) = delete;
  ~WithoutTexts() { of_session_ = std::move(texts_); }

 private:
  std::unique_ptr<KeptTexts>& of_session_;
  std::unique_ptr<KeptTexts> texts_;
};

/// True if the session can put stored keys and values in place of reading. If chunks consist of whole blocks, the same
/// matrix products compute a block in every text. Not so with experts: their products depend on the number of rows of a
/// pass that have chosen an expert.
bool can_know_texts(const Session::Impl& session);

/// The part of a plan's common text that a pass may take from stores, without what must pass. `salt` separates texts
/// that must not be shared.
StoredPart stored_part(const network::Pass& pass, const ReadingPlan& plan, TextType type, std::string_view salt);

/// Reads prompts to the end. Takes the beginning of their common text from the session's texts, and stores the rest
/// there.
std::vector<Prefilled> read_prompts(Session::Impl& session, const ReadingSizes& sizes, const ReadingInput& input,
                                    std::span<const CacheOptions> caches);

}  // namespace winnow::engine
