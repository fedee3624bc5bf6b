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
/// answer, score, values and timings.decode_ms filled in. Throws what the session throws.
using Measure = std::function<std::vector<Record>(Session& session, const TokenizedSample& tokenized,
                                                  std::vector<Cache>& caches, std::vector<std::vector<float>> logits)>;

/// Measures one method on a sample by itself, the reading of prompts included. Returns a record with score, values,
/// timings, entries and bytes filled in, or with the reason why there are none. Throws what the session throws.
using WholeMeasure = std::function<Record(Session& session, const TokenizedSample& tokenized, const Method& method)>;

/// Lets the model answer, all caches decoding together, and scores what it says. Values have the sample's further
/// metrics. Where an answer names paragraphs, series have their numbers: "paragraphs", and "right_paragraphs"; values
/// have the shares of those that are too small or too large: "earlier", "later".
Measure answering();

/// The answer of the full cache that all caches read.
struct ForcedAnswer {
  enum class Tokens : std::uint8_t {
    best,   ///< at each step the likeliest one, whether it ends the answer or not
    drawn,  ///< from the full cache's distribution without the tokens that end an answer, by the sample's seed
  };
  int length = 64;  ///< tokens
  Tokens tokens = Tokens::best;
};

/// Every cache reads the first cache's answer (teacher-forced). The first cache is the full one. The score is the share
/// of steps whose best token is the full cache's, and values have "kl", the mean KL(full || cache) in nats
/// (docs/tasks.md, fidelity). Of an answer of more than 64 tokens they have "kl@N", too: the mean over the steps of the
/// answer after those of the kl@ before it, up to the Nth, for N = 64, 128, 256, … and the answer's length.
Measure agreeing(const ForcedAnswer& answer = {});

/// Every cache reads the reference token by token (teacher-forced). The score is the share of its tokens that were the
/// most probable ones. Values have "nll", the mean of -ln p(token), and "perplexity", its exponential. With `every` > 0
/// they also have "nll@N" for N = every, 2 * every, …: the mean over the tokens after the (N - every)th, up to the Nth
/// after the prompt. The first token does not count: full attention predicts it whatever the method.
Measure teacher_forcing(int every = 0);

/// How a choice's likelihood is counted.
enum class Likelihood : std::uint8_t {
  sum,        ///< of ln p over its tokens
  per_token,  ///< their mean
};

/// Reads each of the sample's choices after a copy of each cache. The score is 1 when the likeliest one is right; the
/// answer is its name.
Measure choosing(Likelihood likelihood);

/// Decodes 64 tokens for one sequence, then for a batch of eight copies. Values: "ttft_ms" (time to the first token),
/// "decode_tps" and "decode_tps_8" (tokens per second of all sequences), "peak_bytes" (keys, values and work space
/// while reading). The score is the share of the full f16 cache's bytes that is saved.
Measure timing();

/// A Scheduler with so much memory (SchedulerOptions::memory) serves the sample's requests, which come all at once.
/// Their prompts are the sample's, with texts that begin at other places, and each answer has its greatest length.
/// Values: "e2e_ms" (from the first request to the last answer's end), "tps" (generated tokens per second of that
/// time), "batch" (the most requests that were answered together), "ttft_ms" (time to the first token, mean) and
/// "peak_bytes" (keys, values and work space of all). The score is the share of the full f16 cache's bytes that is
/// saved when an answer ends. Where the memory is too small for one request there is no score.
WholeMeasure serving(std::size_t memory);

}  // namespace winnow::eval
