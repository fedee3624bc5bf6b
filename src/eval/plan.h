// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "eval/record_file.h"
#include "eval/sample.h"
#include "winnow/questions.h"
#include "winnow/session.h"

namespace winnow::eval {

const char* name_of(Protocol protocol);

/// A sample as the model reads it.
struct Reading {
  const Sample* sample = nullptr;
  Prompt prompt;
  Protocol protocol = Protocol::aware;
  double read_ms = 0;  ///< what reading the prompt took, for all caches of the group
};

/// What is measured of a reading, for all caches of a group together. One record for each, in their order, of which it
/// fills in answer, score, values and timings.decode_ms. Throws what the session throws.
using Measure = std::function<std::vector<Record>(Session& session, const Reading& reading, std::vector<Cache>& caches,
                                                  std::vector<std::vector<float>> logits)>;

/// What caches are measured against.
enum class Against : std::uint8_t {
  references,  ///< the sample's
  full,        ///< the full f16 cache of the same prompt, which is read with them and stands first
};

/// Whether the caches of a sample are measured together.
enum class Sharing : std::uint8_t {
  together,  ///< the prompt is read once for all
  alone,     ///< each in a group of its own, so that its timings and its peak are its own
};

/// A benchmark: its samples and how one is measured.
struct Task {
  std::vector<Sample> samples;
  Measure measure;
  Against against = Against::references;
  Sharing sharing = Sharing::together;
};

/// Lets the model answer, all caches decoding together, and scores what it says.
Measure answering();

/// Forces 64 greedy tokens of the first cache, the full one, through all: the score is the share of steps with the same
/// best token, and values has "kl", the mean KL(full || cache) in nats (docs/tasks.md, fidelity).
Measure following();

/// Forces the reference, token by token, through all caches. The score is the share of its tokens that were the most
/// probable ones, values have "nll", the mean of -ln p(token), and "perplexity", its exponential; with `every` > 0 also
/// "nll@N" of the tokens up to the Nth after the prompt, since the N before. The first token does not count: it comes
/// from full attention whatever the method.
Measure forcing(int every = 0);

/// How a choice's likelihood is counted.
enum class Likelihood : std::uint8_t {
  sum,        ///< of ln p over its tokens
  per_token,  ///< their mean
};

/// Reads each of the sample's choices after a copy of each cache. The score is 1 when the likeliest one is right, the
/// answer is its name.
Measure choosing(Likelihood likelihood);

/// Decodes 64 tokens for one sequence, then for a batch of eight copies. Values: "ttft_ms" (time to the first token),
/// "decode_tps" and "decode_tps_8" (tokens per second of all sequences), "peak_bytes" (keys, values and work space
/// while reading). The score is the share of the full f16 cache's bytes that is saved.
Measure timing();

/// How long prompts may be. Where prompt and answer do not fit into the context the sample is an error, and nothing is
/// cut in silence.
struct PromptLimits {
  enum class Beyond : std::uint8_t { refused, allowed };

  int max_prompt = 0;  ///< tokens to which longer prompts are cut in their middle, as in LongBench; 0: none is cut
  int context = 0;     ///< tokens of prompt and answer; 0: what the model was trained with
  Beyond beyond = Beyond::refused;  ///< what happens to those that have more
  std::string rope = {};            ///< RoPE options of the user's, as records name them; empty: the file's
};

/// Which part of the samples this process measures.
struct Shard {
  int index = 0;
  int count = 1;
};

struct Plan {
  std::vector<Task> tasks;
  std::vector<CacheOptions> caches;
  std::vector<Protocol> protocols;
  PromptLimits limits;
  Shard shard;
  std::set<Key> known;  ///< measured elsewhere: left out
};

struct Progress {
  std::function<void(int done, int all, const std::string& what)> on_group;  ///< groups, and which begins now
  std::function<void(const std::string& sentence)>
      on_failure;  ///< a sample that could not be measured; the others go on
};

/// What a run came to.
struct Outcome {
  int measured = 0;  ///< groups
  int known = 0;     ///< groups whose records were there
  int failed = 0;
  double model_seconds = 0;  ///< inside the model: prefill and decode
  double seconds = 0;
};

/// Measures what `records` lacks. A group is a sample with one protocol and all caches that it lacks: its text is read
/// once for all of them, and its records are added together. Throws Interrupted, InputError (a full disk); what is in
/// `records` by then stays.
Outcome run(Session& session, const Plan& plan, RecordFile& records, const Progress& progress);

}  // namespace winnow::eval
