// SPDX-License-Identifier: Apache-2.0
#include "engine/promise.h"

#include <algorithm>
#include <cstdint>

#include "base/as_size.h"
#include "cache/lane_storage.h"
#include "cache/merged_entries.h"
#include "cache/summaries.h"
#include "engine/cache_source.h"
#include "engine/extension.h"
#include "engine/layers.h"
#include "engine/model_impl.h"
#include "engine/prefill.h"
#include "engine/sequence.h"

namespace winnow::engine {

namespace {

constexpr int kMergedTogether = 8;  ///< merged entries of a lane whose memory is allocated together

/// Bytes of the merged entries that lanes can gain when so many tokens come: each evicts one entry, which is merged.
std::size_t merged_bytes(const CacheOptions& options, const model::Hparams& hparams, int budget, int more) {
  std::size_t bytes = 0;
  for (int layer = 0; layer < hparams.n_kv_layer; ++layer) {
    const auto shape = lane_shape(options, hparams.layer(layer));
    if (shape.merged_entries == 0) continue;
    const double most = std::min<double>(more, shape.merged_entries * budget) + kMergedTogether;
    bytes +=
        as_size(shape.kv_heads) * static_cast<std::size_t>(most) * cache::MergedEntries::bytes(shape.state_columns);
  }
  return bytes;
}

}  // namespace

/// Lanes grow by pages, all of a layer at once; those of a method that evicts while decoding end at its budget and its
/// buffer.
std::size_t growth_bytes(const CacheOptions& options, const model::Hparams& hparams, int tokens, int more) {
  if (more == 0) return 0;
  constexpr auto kPage = as_size(cache::LaneStorage::kPage);
  const std::size_t summaries = summary_bytes(options, hparams, 1 + cache::Summaries::kPage);
  const std::size_t windows = window_growth_bytes(options, hparams, tokens, more, kExtendRows);
  if (options.spec.method().schedule != policy::Schedule::step)
    return (as_size(more) + kPage) * entry_bytes(options, hparams) + windows + summaries;
  const int budget = budget_entries(options, hparams, tokens);
  const int entries = std::min(more, std::max(0, budget - tokens) + options.spec.method().decoding.buffer);
  return (as_size(entries) + kPage) * entry_bytes(options, hparams) + merged_bytes(options, hparams, budget, more) +
         windows + summaries;
}

namespace {

std::size_t logits_bytes(const Session::Impl& session, int rows) {
  return as_size(rows) * as_size(session.hparams.n_vocab) * sizeof(float);
}

std::size_t logprob_bytes(int tokens, int alternatives) {
  return as_size(tokens) * (sizeof(GeneratedToken) + as_size(alternatives) * sizeof(TokenLogprob));
}

/// Bytes of one answer. The logits of one with a grammar may have to wait for their turn.
std::size_t answer_bytes(const GenerateOptions& options, const Session::Impl& session) {
  const int rows = options.grammar.empty() ? 1 : 2;
  const std::size_t logprobs = options.logprobs > 0 ? logprob_bytes(options.max_tokens, options.logprobs) : 0;
  return logits_bytes(session, rows) + logprobs;
}

/// Tokens that come after those of the cache, as many as positions can count.
int tokens_to_come(const Request& request, int tokens) {
  const auto more = static_cast<std::int64_t>(request.question.size()) + request.generate.max_tokens;
  constexpr std::int64_t kMost = 1 << 30;
  return static_cast<int>(std::min(more, kMost - std::min<std::int64_t>(tokens, kMost)));
}

/// Bytes that a text in stages takes. All but the last are those of the stages so far.
struct TextBytes {
  int tokens = 0;
  std::size_t kept = 0;     ///< of the stages that are compressed
  int appended = 0;         ///< tokens of the others
  std::size_t rows = 0;     ///< of a layer, all heads together
  std::size_t reading = 0;  ///< the most that reading takes

  void add(const Stage& stage, const model::Hparams& hparams) {
    tokens += stage.tokens();
    if (stage.keep) {
      kept += cache_bytes(*stage.keep, hparams, stage.size());
      rows += rows_kept(*stage.keep, hparams, stage.size());
    } else {
      appended += stage.tokens();
      rows += as_size(stage.tokens()) * as_size(most_heads(hparams).kv);
    }
  }
  PastSize past(const CacheOptions& options, const Session::Impl& session) const {
    const auto type = scratch_type(session.options.precision, std::span(&options, 1));
    return past_size(type, session.hparams, tokens, rows);
  }
};

std::size_t held_by(const TextBytes& text, const CacheOptions& options, const model::Hparams& hparams, int first,
                    int more) {
  return text.kept + growth_bytes(options, hparams, first, text.appended + more);
}

/// Bytes that reading a stage takes besides the lanes of those before it.
std::size_t stage_bytes(const Stage& stage, const TextBytes& before, const CacheOptions& options,
                        const Session::Impl& session) {
  const auto past = before.past(options, session);
  if (!stage.keep) return extension_bytes(session, options, stage.tokens(), past);
  if (stage.first > 0) return session.later_bytes(stage.size(), *stage.keep, past);
  return session.prefill_bytes(stage.size(), std::span(&*stage.keep, 1));
}

TextBytes text_bytes(std::span<const Stage> stages, const CacheOptions& options, const Session::Impl& session) {
  TextBytes out;
  const auto& hparams = session.hparams;
  const int first = stages.front().tokens();
  for (const auto& stage : stages) {
    const bool is_later = stage.first > 0;
    const std::size_t before = is_later ? held_by(out, options, hparams, first, 0) : 0;
    const std::size_t read = stage_bytes(stage, out, options, session);
    out.add(stage, hparams);
    // A stage is put after the others a layer at a time: twice what is kept is more than that.
    const std::size_t joining = is_later ? 2 * held_by(out, options, hparams, first, 0) : 0;
    out.reading = std::max({out.reading, before + read, joining});
  }
  return out;
}

}  // namespace

std::size_t kept_bytes(std::span<const Stage> stages, const CacheOptions& options, const model::Hparams& hparams) {
  TextBytes text;
  for (const auto& stage : stages) text.add(stage, hparams);
  return held_by(text, options, hparams, stages.front().tokens(), 0);
}

namespace {

/// Bytes that a cache takes that is there, while its question is read and then while it answers.
struct AnsweringBytes {
  std::size_t held = 0;    ///< when the answer has ended
  std::size_t asking = 0;  ///< besides, while the question is read: that is once for all answers

  std::size_t of(const Request& request, const Session::Impl& session) const {
    return std::max(held + asking, as_size(request.answers) * (held + answer_bytes(request.generate, session)));
  }
};

}  // namespace

std::size_t answering_bytes(const Request& request, const Sequence& cache, const Session::Impl& session) {
  const auto& options = cache.options();
  const int more = tokens_to_come(request, cache.seen);
  const auto past = Past(cache, cache.seen).size(scratch_type(session.options.precision, std::span(&options, 1)));
  return AnsweringBytes{cache.bytes_held() + growth_bytes(options, session.hparams, cache.seen, more),
                        extension_bytes(session, options, static_cast<int>(request.question.size()), past)}
      .of(request, session);
}

namespace {

Promise promise_of_source(const Request& request, const Session::Impl& session) {
  const auto& source = *request.source;
  const int more = tokens_to_come(request, source.tokens());
  const std::size_t held =
      source.cache_bytes(session) + growth_bytes(request.keep, session.hparams, source.tokens(), more);
  return {source.bytes(session), as_size(request.answers) * (held + answer_bytes(request.generate, session))};
}

}  // namespace

Promise promise_of(const Request& request, const Session::Impl& session) {
  if (request.cache) return {0, answering_bytes(request, request.cache->impl(), session)};
  if (request.source) return promise_of_source(request, session);
  const auto& hparams = session.hparams;
  Promise out;
  const auto stages = stages_of(request, hparams);
  const auto& options = *stages.front().keep;
  const auto text = text_bytes(stages, options, session);
  const int tokens = static_cast<int>(request.text.size());
  out.reading = text.reading;
  if (request.prompt_logprobs)
    out.reading +=
        logits_bytes(session, std::min(kScoredRows, tokens)) + logprob_bytes(tokens, *request.prompt_logprobs);
  const std::size_t held = held_by(text, options, hparams, stages.front().tokens(), tokens_to_come(request, tokens));
  const auto past = text.past(options, session);
  out.answering =
      AnsweringBytes{held, extension_bytes(session, request.keep, static_cast<int>(request.question.size()), past)}.of(
          request, session);
  return out;
}

}  // namespace winnow::engine
