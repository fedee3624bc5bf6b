// SPDX-License-Identifier: Apache-2.0
#include "engine/promise.h"

#include <algorithm>
#include <cstdint>

#include "base/as_size.h"
#include "cache/lane_storage.h"
#include "cache/merged_entries.h"
#include "engine/layers.h"
#include "engine/prefill.h"
#include "engine/sequence.h"

namespace winnow::engine {

namespace {

constexpr int kMergedTogether = 8;  ///< merged entries of a lane whose memory is allocated together

/// Bytes of the merged entries that lanes can gain when so many tokens come: each evicts one entry, which is merged.
std::size_t merged_bytes(const CacheOptions& options, const model::Hparams& hparams, int budget, int more) {
  std::size_t bytes = 0;
  for (int layer = 0; layer < hparams.n_layer; ++layer) {
    const auto shape = lane_shape(options, hparams.layer(layer));
    if (shape.merged_entries == 0) continue;
    const double most = std::min<double>(more, shape.merged_entries * budget) + kMergedTogether;
    bytes +=
        as_size(shape.kv_heads) * static_cast<std::size_t>(most) * cache::MergedEntries::bytes(shape.state_columns);
  }
  return bytes;
}

/// Bytes by which a cache of `tokens` tokens can grow when so many more come. Lanes grow by pages, all of a layer at
/// once; those of a method that evicts at every step end at its budget, and one entry is added before one is evicted.
std::size_t growth_bytes(const CacheOptions& options, const model::Hparams& hparams, int tokens, int more) {
  if (more == 0) return 0;
  constexpr auto kPage = as_size(cache::LaneStorage::kPage);
  const std::size_t summaries =
      summary_bytes(options, hparams, tokens + more) - summary_bytes(options, hparams, tokens);
  if (options.spec.method().schedule != policy::Schedule::step)
    return (as_size(more) + kPage) * entry_bytes(options, hparams) + summaries;
  const int budget = budget_entries(options, hparams, tokens);
  const int entries = std::min(more, std::max(0, budget - tokens) + 1);
  return (as_size(entries) + kPage) * entry_bytes(options, hparams) + merged_bytes(options, hparams, budget, more) +
         summaries;
}

std::size_t logits_bytes(const Session::Impl& session, int rows) {
  return as_size(rows) * as_size(session.hparams.n_vocab) * sizeof(float);
}

std::size_t logprob_bytes(int tokens, int alternatives) {
  return as_size(tokens) * (sizeof(GeneratedToken) + as_size(alternatives) * sizeof(TokenLogprob));
}

/// Of one answer.
std::size_t answer_bytes(const GenerateOptions& options, const Session::Impl& session) {
  const std::size_t logprobs = options.logprobs > 0 ? logprob_bytes(options.max_tokens, options.logprobs) : 0;
  return logits_bytes(session, 1) + logprobs;
}

/// Tokens that come after those of the cache, as many as positions can count.
int tokens_to_come(const Request& request, int tokens) {
  const auto more = static_cast<std::int64_t>(request.question.size()) + request.generate.max_tokens;
  constexpr std::int64_t kMost = 1 << 30;
  return static_cast<int>(std::min(more, kMost - std::min<std::int64_t>(tokens, kMost)));
}

}  // namespace

Promise promise_of(const Request& request, const Session::Impl& session) {
  Promise out;
  std::size_t read = 0;
  int tokens = static_cast<int>(request.text.size());
  const CacheOptions* options = &request.keep;
  if (request.cache) {
    const auto& sequence = request.cache->impl();
    options = &sequence.options();
    tokens = sequence.seen;
    read = sequence.bytes_held();
  } else {
    out.reading = session.prefill_bytes(tokens, std::span(options, 1));
    if (request.prompt_logprobs)
      out.reading +=
          logits_bytes(session, std::min(kScoredRows, tokens)) + logprob_bytes(tokens, *request.prompt_logprobs);
    read = cache_bytes(*options, session.hparams, tokens);
  }
  const int more = tokens_to_come(request, tokens);
  out.answering = as_size(request.answers) * (read + growth_bytes(*options, session.hparams, tokens, more) +
                                              answer_bytes(request.generate, session));
  return out;
}

}  // namespace winnow::engine
