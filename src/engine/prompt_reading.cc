// SPDX-License-Identifier: Apache-2.0
#include "engine/prompt_reading.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/as_size.h"
#include "base/check_memory.h"
#include "base/memory.h"
#include "engine/model_impl.h"

namespace winnow::engine {

namespace {

Token likeliest(std::span<const float> logits) {
  return static_cast<Token>(std::ranges::max_element(logits) - logits.begin());
}

}  // namespace

PromptReading::PromptReading(Session::Impl& session, ReadingPlan plan, const ReadingInput& input)
    : session_(session),
      plan_(std::move(plan)),
      text_(input.text.begin(), input.text.end()),
      questions_(input.questions.begin(), input.questions.end()),
      past_(input.past),
      known_(input.known),
      outputs_(input.outputs),
      observer_(input.observer),
      progress_(input.progress ? input.progress : session.progress),
      rankings_(begin_rankings()),
      drafts_(prompts(), std::vector<std::vector<Token>>(plan_.again().size())) {
  check_memory(plan_.bytes().all(),
               fmt::format("reading {} tokens (hidden states, one layer's keys and values, kept entries)",
                           plan_.first().prompt_rows()));
  if (auto* const device = session_.device()) {
    const auto bytes = plan_.bytes().device;
    if (bytes + device->margin() > device->available()) session_.decode_attention->free_copies();
    device->check_for_prompt(bytes);
  }
  begin_pass(plan_.first(), rankings_);
}

void PromptReading::begin_pass(const PrefillPlan& plan, const Rankings& rankings) {
  prefill_.emplace(session_, plan, session_.begin_pass(as_size(plan.prompt_rows()), plan_.bytes().all()),
                   ReadingInput{.text = text_,
                                .questions = questions_,
                                .past = past_,
                                .known = known_,
                                .outputs = outputs_,
                                .observer = observer_},
                   rankings);
}

/// Rankings for the first pass to fill.
Rankings PromptReading::begin_rankings() const {
  const CountingScope counting(session_.account);
  Rankings out;
  for (const auto& branch : plan_.first().branches()) {
    auto& of_prompt = out.emplace_back();
    for (const auto& cache : branch.prompt.caches) {
      auto& ranking = of_prompt.emplace_back();
      if (cache.reading == policy::Reading::ranking)
        ranking = std::make_shared<Ranking>(cache.options.spec.method(), session_.hparams, branch.prompt.size.tokens);
    }
  }
  return out;
}

bool PromptReading::advance() {
  if (!prefill_) {
    if (!draft()) begin_second_pass();
    return true;
  }
  const bool goes_on = advance_pass();
  if (progress_) progress_(done());
  if (goes_on) return true;
  if (known_ != nullptr) known_->store();
  if (!plan_.has_second() || second_) return false;
  end_first_pass();
  return true;
}

bool PromptReading::advance_pass() {
  const Session::Impl::Stops stops(session_);
  return prefill_->advance();
}

double PromptReading::done() const {
  const double of_pass = prefill_ ? prefill_->done() : 1;
  return plan_.has_second() ? ((second_ ? 1 : 0) + of_pass) / 2 : of_pass;
}

void PromptReading::end_first_pass() {
  for (std::size_t i = 0; i < prompts(); ++i) {
    auto& kept = kept_.emplace_back();
    for (auto& cache : prefill_->take_caches(i)) kept.emplace_back(std::move(cache));
    logits_.push_back(prefill_->logits(i));
  }
  next_ = logits_.front();
  prefill_.reset();
}

/// Generates the next token of the current draft. Returns false when all drafts are complete.
bool PromptReading::draft() {
  const auto again = plan_.again();
  const std::size_t prompt = drafts_done_ / again.size();
  if (prompt == prompts()) return false;
  const std::size_t which = drafts_done_ % again.size();
  auto& tokens = drafts_[prompt][which];
  auto& cache = kept_[prompt][again[which].cache];
  const auto most = as_size(again[which].drafted);
  const Token token = likeliest(next_);
  const bool ends = most == 0 || (!tokens.empty() && session_.model->vocab().ends(token));
  if (!ends) tokens.push_back(token);
  if (!ends && tokens.size() < most) {
    session_.step(cache->impl(), std::span(&token, 1), next_);
    return true;
  }
  cache.reset();
  ++drafts_done_;
  next_ = logits_[std::min(drafts_done_ / again.size(), prompts() - 1)];
  return true;
}

/// The first pass has stored more of the text than was known before it.
void PromptReading::take_known_text() {
  const auto& hparams = session_.hparams;
  known_->begin_later_pass({second_->first_seen(hparams), [&](int rows) { return second_->states(hparams, rows); }});
  if (known_->tokens() > second_->known()) second_.emplace(plan_.second(session_, drafts_, known_->tokens()));
}

void PromptReading::begin_second_pass() {
  logits_ = {};
  next_ = {};
  second_.emplace(plan_.second(session_, drafts_, plan_.first().known()));
  if (known_ != nullptr) take_known_text();
  Rankings rankings;
  for (const auto& of_prompt : rankings_) {
    auto& of_second = rankings.emplace_back();
    for (const auto& again : plan_.again()) of_second.push_back(of_prompt[again.cache]);
  }
  begin_pass(*second_, rankings);
}

std::vector<const Cache*> PromptReading::caches(std::size_t prompt) const {
  std::vector<const Cache*> out;
  if (!kept_.empty()) {
    for (const auto& cache : kept_[prompt]) {
      if (cache) out.push_back(&*cache);
    }
  }
  if (!prefill_) return out;
  for (const auto& cache : prefill_->caches(prompt)) out.push_back(&cache);
  return out;
}

std::vector<Cache> PromptReading::take_caches(std::size_t prompt) {
  auto last = prefill_->take_caches(prompt);
  if (!plan_.has_second()) return last;
  auto& kept = kept_[prompt];
  for (std::size_t i = 0; i < last.size(); ++i) kept[plan_.again()[i].cache].emplace(std::move(last[i]));
  std::vector<Cache> out;
  for (auto& cache : kept) out.push_back(std::move(*cache));
  kept.clear();
  return out;
}

std::vector<Prefilled> PromptReading::run() {
  while (advance()) continue;
  std::vector<Prefilled> out;
  for (std::size_t i = 0; i < prompts(); ++i) out.push_back({take_caches(i), logits(i)});
  return out;
}

}  // namespace winnow::engine
