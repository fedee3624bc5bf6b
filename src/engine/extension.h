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

/// Appends tokens to a sequence, by quanta. Many tokens pass through one layer after the other, like a prompt, and
/// enter the lanes in the end. Few tokens pass through all layers together, and so do all tokens of methods whose lanes
/// or reads change with each token. The choice depends on the tokens and the method alone.
class Extension {
 public:
  /// All outlive it. Throws MemoryError. REQUIRES: at least one token.
  Extension(Session::Impl& session, Sequence& sequence, std::span<const Token> tokens);
  Extension(const Extension&) = delete;
  Extension& operator=(const Extension&) = delete;

  /// Reads one chunk through one layer, or some tokens through all layers. Returns false when all tokens have been
  /// appended. After an error the sequence has the tokens of the completed steps.
  bool advance();
  /// Number of tokens left to read; a token that has passed half of the layers counts as half.
  double tokens_left() const;
  /// Logits of the last token, [n_vocab]. REQUIRES: advance() has returned false.
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

/// True if this number of tokens passes through one layer after the other.
bool passes_by_layers(const policy::Method& method, std::size_t tokens);

/// Peak bytes of appending `tokens` tokens, without the lanes that are filled. `past`: earlier entries of a layer.
std::size_t extension_bytes(const Session::Impl& session, const CacheOptions& options, int tokens,
                            const PastSize& past);

}  // namespace winnow::engine
