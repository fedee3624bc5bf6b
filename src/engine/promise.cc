// SPDX-License-Identifier: Apache-2.0
#include "engine/promise.h"

#include "base/as_size.h"
#include "cache/lane_storage.h"
#include "engine/layers.h"
#include "engine/prefill.h"
#include "engine/sequence.h"

namespace winnow::engine {

namespace {

/// Bytes by which a cache of `tokens` tokens can grow when so many more come. Lanes grow by pages, all of a layer at
/// once; those of a method that evicts at every step end at its budget, and one entry is added before one is evicted.
std::size_t growth_bytes(const CacheOptions& options, const model::Hparams& hparams, int tokens, int more) {
  if (more == 0) return 0;
  int entries = more;
  if (options.spec.method().schedule == policy::Schedule::step) {
    const int budget = budget_entries(options, hparams, tokens);
    entries = std::min(entries, std::max(0, budget - tokens) + 1);
  }
  constexpr int kPage = cache::LaneStorage::kPage;
  return as_size(entries + kPage) * entry_bytes(options, hparams) + summary_bytes(options, hparams, tokens + more) -
         summary_bytes(options, hparams, tokens);
}

}  // namespace

Promise promise_of(const Request& request, const Session::Impl& session) {
  const int more = static_cast<int>(request.question.size()) + request.generate.max_tokens;
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
      out.reading += as_size(std::min(kScoredRows, tokens)) * as_size(session.hparams.n_vocab) * sizeof(float);
    read = cache_bytes(*options, session.hparams, tokens);
  }
  out.answering = as_size(request.answers) * (read + growth_bytes(*options, session.hparams, tokens, more));
  return out;
}

}  // namespace winnow::engine
