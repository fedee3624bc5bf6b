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

std::size_t CacheSize::grown(const Session::Impl& session, int more) const {
  constexpr std::int64_t kMost = 1 << 30;  // range of positions
  const auto wanted = std::int64_t{appended} + more;
  return bytes + growth_bytes(keep, session.hparams, tokens,
                              static_cast<int>(std::min(wanted, kMost - std::min<std::int64_t>(tokens, kMost))));
}

TextPlan::TextPlan(const Request& request, const Session::Impl& session) {
  const auto& text = request.text();
  auto stages = stages_of(text, request.keep, session.hparams);
  cache_.keep = *stages.front().keep;
  cache_.tokens = stages.front().tokens();
  for (auto& stage : stages) add(std::move(stage), session);
  if (!text.prompt_logprobs) return;
  reading_ += logits_bytes(session, std::min(kScoredRows, tokens_)) + logprob_bytes(tokens_, *text.prompt_logprobs);
}

std::size_t TextPlan::plan(Part& part, const Session::Impl& session) const {
  const auto& stage = part.stage;
  const auto before = past(session);
  if (!stage.keep) return extension_bytes(session, cache_.keep, stage.tokens(), before);
  ReadingSizes sizes{.text = stage.tokens(), .asked = static_cast<int>(stage.asked)};
  if (stage.first > 0) sizes.past = before;
  return part.reading.emplace(session, sizes, std::span(&*stage.keep, 1)).bytes().all();
}

void TextPlan::add(Stage stage, const Session::Impl& session) {
  Part part{std::move(stage), {}};
  const auto& hparams = session.hparams;
  const bool is_later = !parts_.empty();
  const std::size_t before = is_later ? cache_.grown(session, 0) : 0;
  const std::size_t read = plan(part, session);
  const auto& added = parts_.emplace_back(std::move(part)).stage;
  tokens_ += added.tokens();
  if (added.keep) {
    cache_.bytes += cache_bytes(*added.keep, hparams, added.size());
    rows_ += rows_kept(*added.keep, hparams, added.size());
  } else {
    cache_.appended += added.tokens();
    rows_ += as_size(added.tokens()) * as_size(most_heads(hparams).kv);
  }
  // Stages are joined layer by layer; twice the cache is an upper bound of that.
  const std::size_t joining = is_later ? 2 * cache_.grown(session, 0) : 0;
  reading_ = std::max({reading_, before + read, joining});
}

PastSize TextPlan::past(const Session::Impl& session) const {
  const auto type = scratch_type(session.options.precision, std::span(&cache_.keep, 1));
  return past_size(type, session.hparams, tokens_, rows_);
}

AnswerPlan::AnswerPlan(const Request& request, CacheSize cache, std::size_t asking)
    : cache_(std::move(cache)),
      asking_(asking),
      answers_(request.answers),
      // An answer with a grammar may hold a second row of logits while it waits for its turn.
      logits_rows_(request.generate.grammar.empty() ? 1 : 2),
      alternatives_(request.generate.logprobs) {
  cache_.appended += static_cast<int>(request.question.size());
}

std::size_t AnswerPlan::bytes(const Session::Impl& session, int tokens) const {
  const std::size_t held = cache_.grown(session, tokens);
  const std::size_t logprobs = alternatives_ > 0 ? logprob_bytes(tokens, alternatives_) : 0;
  return std::max(held + asking_, as_size(answers_) * (held + logits_bytes(session, logits_rows_) + logprobs));
}

AnswerPlan answer_plan(const Request& request, const Sequence& cache, const Session::Impl& session) {
  const auto& options = cache.options();
  const auto past = Past(cache, cache.seen).size(scratch_type(session.options.precision, std::span(&options, 1)));
  return {request, CacheSize{.keep = options, .bytes = cache.bytes_held(), .tokens = cache.seen},
          extension_bytes(session, options, static_cast<int>(request.question.size()), past)};
}

AnswerPromise::AnswerPromise(const AnswerPlan& plan, int most_tokens, const Session::Impl& session)
    : session_(&session),
      plan_(plan),
      most_tokens_(most_tokens),
      tokens_(with_portion(0)),
      bytes_(plan.bytes(session, tokens_)),
      next_bytes_(plan.bytes(session, with_portion(tokens_))),
      most_bytes_(plan.bytes(session, most_tokens)) {}

void AnswerPromise::grow() {
  tokens_ = with_portion(tokens_);
  bytes_ = next_bytes_;
  next_bytes_ = plan_.bytes(*session_, with_portion(tokens_));
}

namespace {

std::optional<TextPlan> text_plan(const Request& request, const Session::Impl& session) {
  if (!std::holds_alternative<RequestText>(request.source)) return std::nullopt;
  return TextPlan(request, session);
}

std::size_t reading_bytes(const Request& request, const std::optional<TextPlan>& text, const Session::Impl& session) {
  if (text) return text->reading();
  const auto* const source = std::get_if<std::shared_ptr<CacheSource>>(&request.source);
  return source == nullptr ? 0 : (*source)->bytes(session);
}

AnswerPlan answer_plan(const Request& request, const std::optional<TextPlan>& text, const Session::Impl& session) {
  if (const auto* const past = std::get_if<RequestCache>(&request.source))
    return answer_plan(request, past->cache.impl(), session);
  if (text) {
    const auto question = static_cast<int>(request.question.size());
    return {request, text->cache(), extension_bytes(session, request.keep, question, text->past(session))};
  }
  const auto& source = *std::get<std::shared_ptr<CacheSource>>(request.source);
  return {request, {.keep = request.keep, .bytes = source.cache_bytes(session), .tokens = source.tokens()}, 0};
}

}  // namespace

RequestPlan::RequestPlan(const Request& request, const Session::Impl& session)
    : text(text_plan(request, session)),
      reading(reading_bytes(request, text, session)),
      answers(answer_plan(request, text, session)) {}

std::size_t RequestPlan::bytes(const Session::Impl& session, int tokens) const {
  return std::max(reading, answers.bytes(session, tokens));
}

}  // namespace winnow::engine
