// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "winnow/policy/method.h"

namespace winnow::policy {

/// How far a span of text goes from its best entry.
struct SpanShape {
  /// What it does not go beyond.
  enum class Stop : std::uint8_t { none, line, sentence };
  int before = 4;              ///< entries, at most
  int after = 24;              ///< likewise
  Stop stop = Stop::sentence;  ///< the ends of sentences are also those of lines
};

/// winnow's own: spans of text around the best entries, in the place of a grid. The best entry that is in no span yet
/// begins one, which grows to both sides until it is long enough, or a sentence or line ends. It then goes on to where
/// no word is cut (TokenClass says what a word is: numbers, hexadecimal strings and identifiers are words). What lies
/// in better spans already belongs to these. A span's score is that of its best entry; where not all of it is kept, the
/// entries nearest to that one are. Equal entries begin spans from the last one on.
DividePart spans_of(const SpanShape& shape);

}  // namespace winnow::policy
