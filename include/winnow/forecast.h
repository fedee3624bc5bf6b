// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "winnow/export.h"
#include "winnow/questions.h"
#include "winnow/session.h"

namespace winnow {

/// The work and the memory to read a text with its questions and to answer them.
struct Forecast {
  std::int64_t rows = 0;       ///< tokens that pass through all layers, each time that they do
  std::size_t peak_bytes = 0;  ///< the most that MemoryUse::peak can become
  int measured_tokens = 0;     ///< from the beginning, which were read
  double measured_ms = 0;

  /// At least: attention to many tokens and what methods observe take longer.
  double read_ms() const { return measured_ms * static_cast<double>(rows) / measured_tokens; }
};

/// Computes the rows and bytes; reads the first tokens to see how long they take, and which work space the session
/// needs. `answer` tokens are generated for each question at most. REQUIRES: text or a question. Throws what
/// Session::prefill() throws.
WINNOW_EXPORT Forecast forecast(Session& session, std::span<const Token> text,
                                std::span<const std::vector<Token>> questions, Protocol protocol,
                                const CacheOptions& keep, int answer);

}  // namespace winnow
