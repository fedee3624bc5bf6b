// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/rope.h"
#include "model/architecture.h"
#include "model/gguf_file.h"
#include "winnow/model_options.h"

namespace winnow::model {

/// RoPE scaling of a network. Every scheme is reduced to frequencies and one magnitude.
struct RopeScaling {
  enum class Kind : std::uint8_t { none, linear, yarn };
  /// Choice between the two sets of factors that some models have (Phi-3's "longrope").
  enum class Factors : std::uint8_t { by_context, of_short_texts, of_long_texts };

  Kind kind = Kind::none;
  Factors factors = Factors::by_context;
  double factor = 1;            ///< extension of the context, usually 1 or more
  double original_context = 0;  ///< trained context in tokens, before scaling
  int file_context = 0;         ///< the file's value of original_context, regardless of the user's
  double fast_turns = 32;  ///< YaRN keeps the frequency of pairs that turn at least this often in the original context
  double slow_turns = 1;   ///< YaRN fully interpolates pairs that turn at most this often in the original context
  double log_multiplier = 0;    ///< YaRN's magnitude is divided by a term with it (scaled_rope()); 0: not divided
  double attention_factor = 1;  ///< additional factor of the magnitude, from the file
  bool by_user = false;

  /// Usable context of a network with this context_length in its file.
  double context(double context) const;
};

inline constexpr int kLongestContext = 1 << 30;  ///< in tokens; far beyond any real network

/// Reads the user's options, else the file, whose context_length is `context`. Throws ModelError, and UsageError for
/// the user's options.
RopeScaling read_rope_scaling(const GgufKeys& keys, const Architecture& architecture, int context,
                              const ModelOptions& options);

/// Frequencies of `dims` rotated dimensions, and the magnitude, without a file's factors. YaRN: Peng et al. 2023,
/// section 3.2 and equation 22, with bounds rounded to whole pairs as in llama.cpp; with a log multiplier, the
/// magnitude is divided by 1 + 0.1 multiplier ln(factor).
Rope scaled_rope(Rope::Pairing pairing, double base, int dims, const RopeScaling& scaling);

/// Divides every frequency by its factor in rope_freqs or in the factors for long or short texts.
void divide(Rope& rope, const float* factors);

}  // namespace winnow::model
