// SPDX-License-Identifier: Apache-2.0
#include "engine/prompt_reading.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/as_size.h"
#include "base/memory.h"
#include "engine/decode.h"
#include "engine/layers.h"
#include "engine/model_impl.h"
#include "engine/promise.h"
#include "engine/replay.h"
#include "policy/top.h"

namespace winnow::engine {

namespace {

bool ranks_all_layers(const CacheOptions& options) { return options.spec.method().selection.heads_of_all_layers; }

/// Tokens that are drafted at most.
int drafted_by(const CacheOptions& options) {
  const auto& draft = options.spec.method().draft;
  return draft ? draft->tokens : 0;
}

bool evicts(const CacheOptions& options, const model::Hparams& hparams, int tokens) {
  return options.spec.method().evicts() && tokens > budget_entries(options, hparams, tokens);
}

/// A cache that keeps all of each prompt needs one pass.
Passes passes_of(std::span<const CacheOptions> caches, const model::Hparams& hparams,
                 std::span<const PromptSize> prompts) {
  Passes out;
  out.first.assign(caches.begin(), caches.end());
  for (std::size_t i = 0; i < caches.size(); ++i) {
    const bool has_draft = drafted_by(caches[i]) > 0;
    if (!has_draft && !ranks_all_layers(caches[i])) continue;
    if (std::ranges::none_of(prompts, [&](const PromptSize& size) { return evicts(caches[i], hparams, size.tokens); }))
      continue;
    if (has_draft) out.first[i].spec = caches[i].spec.drafter();
    out.again.push_back(i);
    out.second.push_back(caches[i]);
  }
  return out;
}

/// KV heads of all layers without a window.
int ranked_heads(const model::Hparams& hparams) {
  int heads = 0;
  for (const auto& prompt : prompts_of(hparams, 1)) heads += prompt.kv_heads;
  return heads;
}

Token likeliest(std::span<const float> logits) {
  return static_cast<Token>(std::ranges::max_element(logits) - logits.begin());
}

}  // namespace

PromptReading::PromptReading(Session::Impl& session, PrefillContext first, std::size_t bytes,
                             std::span<const Token> text, std::span<const std::vector<Token>> questions,
                             std::span<const CacheOptions> caches)
    : session_(session),
      bytes_(bytes),
      asked_(first.asked),
      text_(text.begin(), text.end()),
      questions_(questions.begin(), questions.end()),
      passes_{{caches.begin(), caches.end()}, {}, {}} {
  if (first.past == nullptr) passes_ = passes_of(caches, session.hparams, prompts());
  const auto rankings = begin_rankings();
  for (const auto& of_prompt : rankings) {
    auto& shown = shown_.emplace_back();
    for (const std::size_t i : passes_.again) shown.push_back(of_prompt[i]);
  }
  first.progress = progress_of(std::move(first.progress));
  prefill_.emplace(std::move(first), text_, questions_, passes_.first, rankings);
}

std::vector<PromptSize> PromptReading::prompts() const {
  std::vector<PromptSize> out;
  for (const auto& question : questions_) out.push_back(size_of(text_.size(), question.size(), asked_));
  return out;
}

/// What the first pass is to fill, [prompt][cache].
AllShown PromptReading::begin_rankings() const {
  const CountingScope counting(session_.account);
  AllShown out;
  for (const auto& prompt : prompts()) {
    const int tokens = prompt.tokens;
    auto& of_prompt = out.emplace_back(passes_.first.size());
    for (std::size_t i = 0; i < passes_.again.size(); ++i) {
      const auto& options = passes_.second[i];
      if (!ranks_all_layers(options) || !evicts(options, session_.hparams, tokens)) continue;
      of_prompt[passes_.again[i]].ranking =
          std::make_shared<Ranking>(Ranking{policy::Scores(ranked_heads(session_.hparams), tokens)});
    }
  }
  return out;
}

/// Told of the share of the pass that begins, it tells of the share of all.
std::function<void(double)> PromptReading::progress_of(std::function<void(double)> all) const {
  if (!all || passes_.again.empty()) return all;
  return [all = std::move(all), pass = pass_](double done) { all((pass + done) / 2); };
}

bool PromptReading::advance() {
  if (prefill_) {
    if (prefill_->advance()) return true;
    if (passes_.again.empty() || pass_ == 1) return false;
    end_first_pass();
  } else if (!draft()) {
    begin_second_pass();
  }
  return true;
}

double PromptReading::done() const {
  const double of_pass = prefill_ ? prefill_->done() : 1;
  return passes_.again.empty() ? of_pass : (pass_ + of_pass) / 2;
}

void PromptReading::end_first_pass() {
  for (std::size_t i = 0; i < questions_.size(); ++i) {
    auto& kept = kept_.emplace_back();
    for (auto& cache : prefill_->take_caches(i)) kept.emplace_back(std::move(cache));
    logits_.push_back(prefill_->logits(i));
  }
  next_ = logits_.front();
  prefill_.reset();
}

/// The next token of the draft that is in work. Returns false when all drafts are there.
bool PromptReading::draft() {
  const std::size_t prompt = drafts_done_ / passes_.again.size();
  if (prompt == questions_.size()) return false;
  const std::size_t which = drafts_done_ % passes_.again.size();
  auto& tokens = shown_[prompt][which].draft;
  auto& cache = kept_[prompt][passes_.again[which]];
  const auto most = as_size(drafted_by(passes_.second[which]));
  const Token token = likeliest(next_);
  const bool ends = most == 0 || (!tokens.empty() && session_.model->ends(token));
  if (!ends) tokens.push_back(token);
  if (!ends && tokens.size() < most) {
    session_.step(cache->impl(), std::span(&token, 1), next_);
    return true;
  }
  cache.reset();
  ++drafts_done_;
  next_ = logits_[std::min(drafts_done_ / passes_.again.size(), questions_.size() - 1)];
  return true;
}

void PromptReading::begin_second_pass() {
  pass_ = 1;
  logits_ = {};
  next_ = {};
  std::size_t rows = text_.size();
  for (const auto& question : questions_) rows += question.size();
  auto context = session_.prefill_context(session_.begin_pass(rows, bytes_));
  context.progress = progress_of(std::move(context.progress));
  context.asked = asked_;
  prefill_.emplace(std::move(context), text_, questions_, passes_.second, shown_);
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
  if (passes_.again.empty()) return last;
  auto& kept = kept_[prompt];
  for (std::size_t i = 0; i < last.size(); ++i) kept[passes_.again[i]].emplace(std::move(last[i]));
  std::vector<Cache> out;
  for (auto& cache : kept) out.push_back(std::move(*cache));
  kept.clear();
  return out;
}

std::vector<Prefilled> PromptReading::run() {
  while (advance()) continue;
  std::vector<Prefilled> out;
  for (std::size_t i = 0; i < questions_.size(); ++i) out.push_back({take_caches(i), logits(i)});
  return out;
}

namespace {

/// Caches that rank entries of all layers together only rank in the first pass; the second keeps what was ranked.
std::vector<CachePass> first_pass(const Passes& passes) {
  auto out = whole_passes(passes.first);
  for (const std::size_t i : passes.again) {
    if (ranks_all_layers(out[i].options)) out[i].reading = policy::Reading::ranking;
  }
  return out;
}

std::vector<CachePass> second_pass(const Passes& passes) {
  auto out = whole_passes(passes.second);
  for (auto& cache : out) {
    if (ranks_all_layers(cache.options)) cache.reading = policy::Reading::keeping;
  }
  return out;
}

/// What is there besides the passes themselves.
struct Between {
  std::size_t kept = 0;      ///< by the first pass
  std::size_t goes = 0;      ///< of it, before the second
  std::size_t unfilled = 0;  ///< lanes that a pass which ranks has none of
  std::size_t growth = 0;    ///< of one drafter's cache, while it drafts
  std::size_t steps = 0;     ///< work space of its steps, which the session keeps
  std::size_t rankings = 0;
  std::size_t ranking = 0;  ///< what making one of them takes
};

Between between(const Passes& passes, const model::Hparams& hparams, std::span<const PromptSize> prompts) {
  Between out;
  for (const auto& prompt : prompts) {
    const int tokens = prompt.tokens;
    for (const auto& options : passes.first) out.kept += cache_bytes(options, hparams, prompt);
    for (std::size_t i = 0; i < passes.again.size(); ++i) {
      const auto& first = passes.first[passes.again[i]];
      const std::size_t lanes = cache_bytes(first, hparams, prompt);
      out.goes += lanes;
      if (drafted_by(passes.second[i]) > 0) {
        const int drafted = drafted_by(passes.second[i]);
        out.growth = std::max(out.growth, growth_bytes(first, hparams, tokens, drafted));
        out.steps = std::max(out.steps, step_bytes(first, hparams, {tokens, drafted}));
      } else if (evicts(first, hparams, tokens)) {
        const std::size_t entries = as_size(ranked_heads(hparams)) * as_size(tokens);
        out.unfilled += lanes;
        out.rankings += entries * sizeof(float);
        out.ranking = std::max(out.ranking, policy::top_of_layer_bytes(entries));
      }
    }
  }
  return out;
}

}  // namespace

std::vector<int> reading_rows(const Session::Impl& session, int shared, std::span<const PromptSize> prompts,
                              std::span<const CacheOptions> caches) {
  const auto passes = passes_of(caches, session.hparams, prompts);
  std::vector<int> out;
  const auto add_pass = [&](std::span<const CachePass> of) {
    out.push_back(shared);
    for (const auto& prompt : prompts) {
      out.push_back(prompt.tokens - shared);
      const auto again = passages_of(of, session.hparams, session.model->impl().vocab, prompt, 0);
      for (const auto& passage : again.passages) out.push_back(passage.rows);
    }
  };
  add_pass(first_pass(passes));
  if (passes.again.empty()) return out;
  add_pass(second_pass(passes));
  for (const auto& options : passes.second)
    out.insert(out.end(), prompts.size() * as_size(std::max(0, drafted_by(options) - 1)), 1);
  return out;
}

ReadingBytes reading_bytes(const Session::Impl& session, int shared, int rows, std::span<const PromptSize> prompts,
                           std::span<const CacheOptions> caches) {
  const auto& hparams = session.hparams;
  const auto passes = passes_of(caches, hparams, prompts);
  for (const auto& options : passes.first) session.options.check(options);
  for (const auto& options : passes.second) session.options.check(options);
  const auto pass_bytes = [&](std::span<const CachePass> of) {
    return prefill_bytes(hparams, session.model->impl().vocab, session.options, shared, rows,
                         session.executor.row_bytes(rows), prompts, of);
  };
  const ReadingBytes first = pass_bytes(first_pass(passes));
  if (passes.again.empty()) return first;
  const Between more = between(passes, hparams, prompts);
  const ReadingBytes second = pass_bytes(second_pass(passes));
  return {std::max(first.work, second.work) + more.steps,
          std::max({first.rest - more.unfilled + more.rankings + more.ranking,
                    more.kept - more.unfilled + more.rankings + more.growth,
                    more.kept - more.goes + more.rankings + second.rest})};
}

}  // namespace winnow::engine
