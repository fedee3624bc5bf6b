// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "winnow/policy/method.h"

namespace winnow::policy {

/// Spreading of an entry's score to the text around it.
struct SpanShape {
  /// Boundaries that stop it.
  enum class Stop : std::uint8_t { none, line, sentence };
  double before = 0.7;         ///< factor for each entry further back, in [0, 1]
  double after = 0.92;         ///< factor for each entry further on, in [0, 1]
  double power = 1;            ///< exponent of scores below 1 before they spread, at least 1
  Stop stop = Stop::sentence;  ///< the end of a line ends a sentence, too
};

/// Pieces that are words of the text. winnow's own. Each entry's score spreads to its neighbours, falling by a factor
/// with each entry, up to the end of the sentence or line; scores below 1 are raised to a power before. Spreading
/// starts from the lowest score, so scores may be negative. NaN is the lowest. An entry's worth is the maximum of its
/// own score and those spread to it, and a word's worth is that of its best entry (TokenClass defines words: numbers,
/// hexadecimal strings and identifiers are words). If only a part of a word is kept, it is its first entries. Ties go
/// to the later word.
DividePart spans_of(const SpanShape& shape);

}  // namespace winnow::policy
