// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "engine/past.h"
#include "engine/prompt_reading.h"
#include "engine/session_impl.h"

namespace winnow::engine {

/// Tokens that are appended to a sequence by quanta. Many of them pass through one layer after the other, as a prompt
/// does, and enter the lanes in the end; few pass through all layers together, as do those of methods whose lanes or
/// reads change with each token. Which way is taken depends on the tokens and the method alone.
class Extension {
 public:
  /// All outlive it. Throws MemoryError. REQUIRES: at least one token.
  Extension(Session::Impl& session, Sequence& sequence, std::span<const Token> tokens);
  Extension(const Extension&) = delete;
  Extension& operator=(const Extension&) = delete;

  /// Reads one chunk through one layer, or some tokens through all of them. Returns false when all have been appended.
  /// When it throws, the sequence has the tokens of the steps that are over.
  bool advance();
  /// Tokens that have still to be read; one that has passed half of the layers is half a token.
  double tokens_left() const;
  /// [n_vocab] of the last token. REQUIRES: advance() has returned false.
  std::vector<float> take_logits() { return std::move(logits_); }

 private:
  bool advance_reading();

  Session::Impl& session_;
  Sequence& sequence_;
  std::span<const Token> tokens_;
  std::size_t appended_ = 0;
  std::optional<Past> past_;
  std::optional<PromptReading> reading_;
  std::vector<float> logits_;
};

/// Whether so many tokens pass through one layer after the other.
bool passes_by_layers(const policy::Method& method, std::size_t tokens);

/// Bytes that appending `tokens` tokens has in use besides the lanes that it fills, at its peak; `past` is what a layer
/// has before them.
std::size_t extension_bytes(const Session::Impl& session, const CacheOptions& options, int tokens,
                            const PastSize& past);

}  // namespace winnow::engine
