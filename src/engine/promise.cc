// SPDX-License-Identifier: Apache-2.0
#include "engine/promise.h"

#include <cstdint>
#include <utility>

#include "base/as_size.h"
#include "engine/cache_bytes.h"
#include "engine/cache_source.h"
#include "engine/extension.h"
#include "engine/layers.h"
#include "engine/past.h"
#include "engine/precision.h"

namespace winnow::engine {

namespace {

std::size_t logits_bytes(const Session::Impl& session, int rows) {
  return as_size(rows) * as_size(session.hparams.n_vocab) * sizeof(float);
}

std::size_t logprob_bytes(int tokens, int alternatives) {
  return as_size(tokens) * (sizeof(GeneratedToken) + as_size(alternatives) * sizeof(TokenLogprob));
}

}  // namespace

TextPlan::TextPlan(const Request& request, const Session::Impl& session) {
  const auto& text = request.text();
  auto stages = stages_of(text, request.keep, session.hparams);
  options_ = *stages.front().keep;
  for (auto& stage : stages) add(std::move(stage), session);
  if (!text.prompt_logprobs) return;
  reading_ += logits_bytes(session, std::min(kScoredRows, tokens_)) + logprob_bytes(tokens_, *text.prompt_logprobs);
}

std::size_t TextPlan::plan(Part& part, const Session::Impl& session) const {
  const auto& stage = part.stage;
  const auto before = past(session);
  if (!stage.keep) return extension_bytes(session, options_, stage.tokens(), before);
  ReadingSizes sizes{.text = stage.tokens(), .asked = static_cast<int>(stage.asked)};
  if (stage.first > 0) sizes.past = before;
  return part.reading.emplace(session, sizes, std::span(&*stage.keep, 1)).bytes().all();
}

void TextPlan::add(Stage stage, const Session::Impl& session) {
  Part part{std::move(stage), {}};
  const auto& hparams = session.hparams;
  const bool is_later = !parts_.empty();
  const std::size_t before = is_later ? kept(session, 0) : 0;
  const std::size_t read = plan(part, session);
  const auto& added = parts_.emplace_back(std::move(part)).stage;
  tokens_ += added.tokens();
  if (added.keep) {
    lanes_ += cache_bytes(*added.keep, hparams, added.size());
    rows_ += rows_kept(*added.keep, hparams, added.size());
  } else {
    appended_ += added.tokens();
    rows_ += as_size(added.tokens()) * as_size(most_heads(hparams).kv);
  }
  // Stages are joined layer by layer; twice the cache is an upper bound of that.
  const std::size_t joining = is_later ? 2 * kept(session, 0) : 0;
  reading_ = std::max({reading_, before + read, joining});
}

std::size_t TextPlan::kept(const Session::Impl& session, int more) const {
  return lanes_ + growth_bytes(options_, session.hparams, parts_.front().stage.tokens(), appended_ + more);
}

PastSize TextPlan::past(const Session::Impl& session) const {
  const auto type = scratch_type(session.options.precision, std::span(&options_, 1));
  return past_size(type, session.hparams, tokens_, rows_);
}

namespace {

/// Bytes of one answer. An answer with a grammar may hold a second row of logits while it waits for its turn.
std::size_t answer_bytes(const GenerateOptions& options, const Session::Impl& session) {
  const int rows = options.grammar.empty() ? 1 : 2;
  const std::size_t logprobs = options.logprobs > 0 ? logprob_bytes(options.max_tokens, options.logprobs) : 0;
  return logits_bytes(session, rows) + logprobs;
}

/// Tokens after those of the cache, limited to the range of positions.
int tokens_to_come(const Request& request, int tokens) {
  const auto more = static_cast<std::int64_t>(request.question.size()) + request.generate.max_tokens;
  constexpr std::int64_t kMost = 1 << 30;
  return static_cast<int>(std::min(more, kMost - std::min<std::int64_t>(tokens, kMost)));
}

/// Bytes of a request's answers. `held`: bytes of a cache when its answer has ended. `asking`: additional bytes while
/// the question is read, once for all answers.
std::size_t answering_bytes(const Request& request, std::size_t held, std::size_t asking,
                            const Session::Impl& session) {
  return std::max(held + asking, as_size(request.answers) * (held + answer_bytes(request.generate, session)));
}

Promise promise_of_source(const Request& request, const CacheSource& source, const Session::Impl& session) {
  const int more = tokens_to_come(request, source.tokens());
  const std::size_t held =
      source.cache_bytes(session) + growth_bytes(request.keep, session.hparams, source.tokens(), more);
  return {source.bytes(session), answering_bytes(request, held, 0, session)};
}

}  // namespace

std::size_t answering_bytes(const Request& request, const Sequence& cache, const Session::Impl& session) {
  const auto& options = cache.options();
  const int more = tokens_to_come(request, cache.seen);
  const auto past = Past(cache, cache.seen).size(scratch_type(session.options.precision, std::span(&options, 1)));
  return answering_bytes(request, cache.bytes_held() + growth_bytes(options, session.hparams, cache.seen, more),
                         extension_bytes(session, options, static_cast<int>(request.question.size()), past), session);
}

RequestPlan::RequestPlan(const Request& request, const Session::Impl& session) {
  if (std::holds_alternative<RequestText>(request.source)) text.emplace(request, session);
  promise = promise_for(request, session);
}

Promise RequestPlan::promise_for(const Request& request, const Session::Impl& session) const {
  if (const auto* const past = std::get_if<RequestCache>(&request.source))
    return {0, answering_bytes(request, past->cache.impl(), session)};
  if (const auto* const source = std::get_if<std::shared_ptr<CacheSource>>(&request.source))
    return promise_of_source(request, **source, session);
  const std::size_t held = text->kept(session, tokens_to_come(request, static_cast<int>(request.text().tokens.size())));
  const auto question = static_cast<int>(request.question.size());
  const std::size_t asking = extension_bytes(session, request.keep, question, text->past(session));
  return {text->reading(), answering_bytes(request, held, asking, session)};
}

}  // namespace winnow::engine
