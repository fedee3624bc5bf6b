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

/// Work and memory to read a text with its questions and to answer them.
struct Forecast {
  std::int64_t rows = 0;       ///< tokens that pass through all layers, counted once per pass
  std::size_t peak_bytes = 0;  ///< upper bound of MemoryUse::peak
  int measured_tokens = 0;     ///< first tokens of the text that were read to measure the time
  double measured_ms = 0;

  /// A lower bound: ignores the additional time of attention to longer texts and of observers.
  double read_ms() const { return measured_ms * static_cast<double>(rows) / measured_tokens; }
};

/// Computes rows and bytes, and reads the first tokens to measure their time and the session's work space. `answer`:
/// maximum number of tokens to generate for each question. REQUIRES: text or a question. Throws what Session::prefill()
/// throws.
WINNOW_EXPORT Forecast forecast(Session& session, std::span<const Token> text,
                                std::span<const std::vector<Token>> questions, Protocol protocol,
                                const CacheOptions& keep, int answer);

}  // namespace winnow
