// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "eval/method.h"
#include "eval/record.h"
#include "eval/tokenized_sample.h"
#include "winnow/session.h"

namespace winnow::eval {

/// Measures a sample with all caches of a group together. Returns one record for each cache, in their order, with
/// answer, score, values and timings.decode_ms. Throws what the session throws.
using Measure = std::function<std::vector<Record>(Session& session, const TokenizedSample& tokenized,
                                                  std::vector<Cache>& caches, std::vector<std::vector<float>> logits)>;

/// Measures one method on a sample by itself, including the reading of prompts. Returns a record with score, values,
/// timings, entries and bytes, or with the reason why there are none. Throws what the session throws.
using WholeMeasure = std::function<Record(Session& session, const TokenizedSample& tokenized, const Method& method)>;

/// Generates answers, decoding all caches together, and scores them. Values have the sample's further metrics. If an
/// answer names paragraphs, the series "paragraphs" and "right_paragraphs" have their numbers, and the values "earlier"
/// and "later" the shares of numbers that are too small and too large.
Measure answering();

/// Asks the sample's later question after an answer of `between` tokens to its first one, which is drawn by the full
/// cache, the first one, and read by all. Then as answering().
Measure answering_later(int between);

/// The full cache's answer, which all caches read.
struct ForcedAnswer {
  enum class Tokens : std::uint8_t {
    best,   ///< at each step the likeliest one, whether it ends the answer or not
    drawn,  ///< from the full cache's distribution without the tokens that end an answer, by the sample's seed
  };
  int length = 64;  ///< tokens
  Tokens tokens = Tokens::best;
};

/// Every cache reads the first cache's answer (teacher forcing). The first cache is the full one. The score is the
/// share of steps at which the best token is the full cache's. Values: "kl", the mean KL(full || cache) in nats
/// (docs/tasks.md, fidelity). For answers of more than 64 tokens also "kl@N" for N = 64, 128, 256, … and the answer's
/// length: the mean over the steps after the previous N, up to the Nth.
Measure agreeing(const ForcedAnswer& answer = {});

/// Every cache reads the reference token by token (teacher forcing). The score is the share of its tokens that were the
/// most probable ones. Values: "nll", the mean of -ln p(token), and "perplexity", its exponential. With `every` > 0
/// also "nll@N" for N = every, 2 * every, …: the mean over the tokens after the (N - every)th, up to the Nth after the
/// prompt. The first token does not count: full attention predicts it with every method.
Measure teacher_forcing(int every = 0);

/// How the likelihood of a choice is computed.
enum class Likelihood : std::uint8_t {
  sum,        ///< of ln p over its tokens
  per_token,  ///< their mean
};

/// Reads each of the sample's choices after a copy of each cache. The score is 1 if the likeliest choice is right; the
/// answer is its name.
Measure choosing(Likelihood likelihood);

/// Decodes 64 tokens for one sequence, then for a batch of eight copies. Values: "ttft_ms" (time to the first token),
/// "decode_tps" and "decode_tps_8" (tokens per second of all sequences), "peak_bytes" (keys, values and work space
/// while reading). The score is the share of the full f16 cache's bytes that is saved.
Measure timing();

/// Serves the sample's requests, which arrive together, by a Scheduler with `memory` bytes (SchedulerOptions::memory).
/// Their prompts are the sample's with other beginnings, and each answer has its greatest length. Values: "e2e_ms"
/// (from the first request to the end of the last answer), "tps" (generated tokens per second of that time), "batch"
/// (the most requests that were answered together), "ttft_ms" (mean time to the first token), "peak_bytes" (keys,
/// values and work space of all requests). The score is the share of the full f16 cache's bytes that is saved when
/// an answer ends. There is no score if the memory is too small for one request.
WholeMeasure serving(std::size_t memory);

}  // namespace winnow::eval
