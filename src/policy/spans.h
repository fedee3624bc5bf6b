// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "winnow/policy/method.h"

namespace winnow::policy {

/// How an entry's score spreads over the text around it.
struct SpanShape {
  /// What it does not go beyond.
  enum class Stop : std::uint8_t { none, line, sentence };
  double before = 0.7;         ///< share of it that is left with each entry further back, in [0, 1]
  double after = 0.92;         ///< the same with each entry further on
  double power = 1;            ///< of a score below 1 that is handed on, at least 1
  Stop stop = Stop::sentence;  ///< the end of a line ends a sentence, too
};

/// winnow's own: words of a text, in the place of a grid. Each entry hands its score on to its neighbours; of a score
/// below 1, a power. With each entry further, less of it is left, and where a sentence or line ends, nothing. What is
/// handed on counts from the least score of all, so that scores may be negative. One that is no number is worse than
/// all. An entry is worth the most that it has or gets, and a word as much as its best entry (TokenClass says what a
/// word is: numbers, hexadecimal strings and identifiers are words). Where not all of a word is kept, its first entries
/// are. Of equal words the later is better.
DividePart spans_of(const SpanShape& shape);

}  // namespace winnow::policy
