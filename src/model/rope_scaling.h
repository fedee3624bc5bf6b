// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/rope.h"
#include "model/architecture.h"
#include "model/gguf_file.h"
#include "winnow/model_options.h"

namespace winnow::model {

/// How a network's frequencies differ from base^(-2i / D). Every scheme becomes frequencies and one magnitude.
struct RopeScaling {
  enum class Kind : std::uint8_t { none, linear, yarn };
  /// Which tensor of factors divides the frequencies of a model that has two (Phi-3's "longrope").
  enum class Factors : std::uint8_t { by_context, of_short_texts, of_long_texts };

  Kind kind = Kind::none;
  Factors factors = Factors::by_context;
  double factor = 1;            ///< how much longer texts become: 1 or more as a rule
  double original_context = 0;  ///< tokens that the network was trained with before it was scaled
  int file_context = 0;         ///< the same as the file says it, whatever the user says
  double fast_turns = 32;       ///< YaRN leaves pairs alone that turn as often in the original context,
  double slow_turns = 1;        ///< and interpolates those that turn no more often than this
  double log_multiplier = 0;    ///< of the logarithm that YaRN's magnitude is divided by; 0: by nothing
  double attention_factor = 1;  ///< what the file asks the magnitude to be multiplied by
  bool by_user = false;

  /// How many tokens a network reads that was trained with `context` of them, as its file says.
  double context(double context) const;
};

inline constexpr int kLongestContext = 1 << 30;  ///< in tokens, far beyond any real network's

/// From the file, whose context_length is `context`, or from what the user says against it. Throws ModelError, and
/// UsageError for the user's.
RopeScaling read_rope_scaling(const GgufKeys& keys, const Architecture& architecture, int context,
                              const ModelOptions& options);

/// Frequencies of `dims` rotated dimensions, and the magnitude, without a file's factors. YaRN: Peng et al. 2023,
/// section 3.2 and equation 22, with the bounds that llama.cpp rounds to whole pairs; with a multiplier the magnitude
/// is divided by 1 + 0.1 multiplier ln(factor).
Rope scaled_rope(Rope::Pairing pairing, double base, int dims, const RopeScaling& scaling);

/// Divides every frequency, as rope_freqs and the factors of long and short texts ask for.
void divide(Rope& rope, const float* factors);

}  // namespace winnow::model
