// SPDX-License-Identifier: Apache-2.0
#include "engine/reading_plan.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/as_size.h"
#include "engine/cache_bytes.h"
#include "engine/decode.h"
#include "engine/layers.h"
#include "engine/prefill_branch.h"
#include "engine/session_impl.h"
#include "policy/top.h"

namespace winnow::engine {

namespace {

bool ranks_all_layers(const CacheOptions& options) { return options.spec.method().selection.heads_of_all_layers; }

int drafted_by(const CacheOptions& options) {
  const auto& draft = options.spec.method().draft;
  return draft ? draft->tokens : 0;
}

bool evicts(const CacheOptions& options, const model::Hparams& hparams, int tokens) {
  return options.spec.method().evicts() && tokens > budget_entries(options, hparams, tokens);
}

/// A question without a text before it is treated as the text.
PromptSize prompt_size(const ReadingSizes& sizes, int question) {
  return {sizes.text + question, question == 0 ? sizes.asked : sizes.text > 0 ? question : 0};
}

/// A cache that keeps all entries of each prompt needs one pass.
std::vector<ReadingPlan::Again> again_of(const ReadingSizes& sizes, std::span<const CacheOptions> caches,
                                         const model::Hparams& hparams) {
  std::vector<ReadingPlan::Again> out;
  for (std::size_t i = 0; i < caches.size() && !sizes.past; ++i) {
    const int drafted = drafted_by(caches[i]);
    const bool is_any_evicted = std::ranges::any_of(
        sizes.questions, [&](int question) { return evicts(caches[i], hparams, sizes.text + question); });
    if (is_any_evicted && (drafted > 0 || ranks_all_layers(caches[i]))) out.push_back({i, drafted});
  }
  return out;
}

/// In the first pass, a cache with a draft is replaced by its drafter's, and one that ranks all layers together is not
/// filled.
PassSizes first_pass(const ReadingSizes& sizes, std::span<const CacheOptions> caches,
                     std::span<const ReadingPlan::Again> again, const model::Hparams& hparams) {
  PassSizes out{.text = sizes.text, .known = sizes.known, .prompts = {}, .past = sizes.past.value_or(PastSize{})};
  for (const int question : sizes.questions) {
    auto& prompt = out.prompts.emplace_back(PromptPass{prompt_size(sizes, question), {}});
    for (const auto& options : caches) prompt.caches.push_back({options});
    for (const auto& [i, drafted] : again) {
      auto& cache = prompt.caches[i];
      if (drafted > 0) {
        cache.options.spec = cache.options.spec.drafter();
      } else if (evicts(cache.options, hparams, prompt.size.tokens)) {
        cache.reading = policy::Reading::ranking;
      }
    }
  }
  return out;
}

/// Drafts are not known yet. Placeholders have the maximum length, and no two are equal.
PassSizes second_pass(const PrefillPlan& first, std::span<const CacheOptions> caches,
                      std::span<const ReadingPlan::Again> again) {
  PassSizes out{.text = first.text(), .known = first.known(), .prompts = {}};
  for (const auto& branch : first.branches()) {
    auto& prompt = out.prompts.emplace_back(PromptPass{branch.prompt.size, {}});
    for (const auto& [i, drafted] : again) {
      const bool is_ranked = branch.prompt.caches[i].reading == policy::Reading::ranking;
      prompt.caches.push_back({caches[i], is_ranked ? policy::Reading::keeping : policy::Reading::whole,
                               std::vector<Token>(as_size(drafted), static_cast<Token>(i))});
    }
  }
  return out;
}

}  // namespace

ReadingSizes sizes_of(std::size_t text, std::span<const std::vector<Token>> questions) {
  if (questions.size() == 1) {
    const auto question = static_cast<int>(questions.front().size());
    return {.text = static_cast<int>(text) + question, .asked = text == 0 ? 0 : question};
  }
  ReadingSizes out{.text = static_cast<int>(text), .questions = {}};
  for (const auto& question : questions) out.questions.push_back(static_cast<int>(question.size()));
  return out;
}

ReadingPlan::ReadingPlan(const Session::Impl& session, const ReadingSizes& sizes, std::span<const CacheOptions> caches)
    : again_(again_of(sizes, caches, session.hparams)),
      first_(session, first_pass(sizes, caches, again_, session.hparams)) {
  if (!again_.empty()) second_.emplace(session, second_pass(first_, caches, again_));
  bytes_ = bytes_of(session);
}

ReadingPlan::ReadingPlan(const Session::Impl& session, int tokens, const CacheOptions& keep)
    : ReadingPlan(session, {.text = tokens}, std::span(&keep, 1)) {}

PrefillPlan ReadingPlan::second(const Session::Impl& session, const Drafts& drafts, int known) const {
  PassSizes sizes{.text = second_->text(), .known = known, .prompts = {}};
  for (std::size_t i = 0; i < drafts.size(); ++i) {
    auto& prompt = sizes.prompts.emplace_back(second_->branches()[i].prompt);
    for (std::size_t j = 0; j < drafts[i].size(); ++j) prompt.caches[j].draft = drafts[i][j];
  }
  return {session, std::move(sizes)};
}

namespace {

/// Bytes besides those of the passes themselves.
struct Between {
  std::size_t kept = 0;      ///< lanes of the first pass
  std::size_t goes = 0;      ///< those of them that are freed before the second pass
  std::size_t unfilled = 0;  ///< lanes that a ranking pass does not fill
  std::size_t growth = 0;    ///< growth of one drafter's cache while it drafts
  std::size_t steps = 0;     ///< work space of its steps; the session keeps it
  std::size_t rankings = 0;
  std::size_t second = 0;   ///< second scores of the rankings
  std::size_t ranking = 0;  ///< work space for making one ranking

  void add(const PromptPass& prompt, const ReadingPlan::Again& again, const Session::Impl& session) {
    const auto& hparams = session.hparams;
    const int tokens = prompt.size.tokens;
    const auto& cache = prompt.caches[again.cache];
    const std::size_t lanes = cache_bytes(cache.options, hparams, prompt.size);
    goes += lanes;
    if (again.drafted > 0) {
      growth = std::max(growth, growth_bytes(cache.options, hparams, tokens, again.drafted));
      steps = std::max(steps, session.stepper.bytes(cache.options, {tokens, again.drafted}));
    } else if (cache.reading == policy::Reading::ranking) {
      const std::size_t scores = Ranking::bytes(hparams, tokens);
      unfilled += lanes;
      rankings += scores;
      second += Ranking::second_bytes(cache.options.spec.method(), hparams, tokens);
      ranking = std::max(ranking, policy::top_of_layer_bytes(scores / sizeof(float)));
    }
  }
};

}  // namespace

ReadingBytes ReadingPlan::bytes_of(const Session::Impl& session) const {
  const auto& first = first_.bytes();
  if (!second_) return first;
  Between more;
  for (const auto& branch : first_.branches()) {
    for (const auto& cache : branch.prompt.caches)
      more.kept += cache_bytes(cache.options, session.hparams, branch.prompt.size);
    for (const auto& again : again_) more.add(branch.prompt, again, session);
  }
  const auto& second = second_->bytes();
  ReadingBytes out{.work = std::max(first.work, second.work) + more.steps,
                   .device = std::max(first.device, second.device)};
  out.reach(first.vectors - more.unfilled, first.facts + more.rankings + more.second + more.ranking);
  out.reach(more.kept - more.unfilled + more.growth, more.rankings);
  out.reach(more.kept - more.goes + second.vectors, more.rankings + second.facts);
  return out;
}

int ReadingPlan::first_seen(const Session::Impl& session) const {
  const int first = first_.first_seen(session.hparams);
  return second_ ? std::min(first, second_->first_seen(session.hparams)) : first;
}

StateSizes ReadingPlan::states(const Session::Impl& session, int rows) const {
  auto out = first_.states(session.hparams, rows);
  if (second_) out.merge(second_->states(session.hparams, rows));
  return out;
}

std::int64_t ReadingPlan::rows() const {
  if (!second_) return first_.rows();
  std::int64_t out = std::int64_t{first_.rows()} + second_->rows();
  for (const auto& again : again_)
    out += static_cast<std::int64_t>(first_.branches().size()) * std::max(0, again.drafted - 1);
  return out;
}

std::vector<int> ReadingPlan::chunk_sizes() const {
  std::set<int> out;
  for (const auto& chunk : first_.chunks()) out.insert(chunk.rows.count);
  if (!second_) return {out.begin(), out.end()};
  for (const auto& chunk : second_->chunks()) out.insert(chunk.rows.count);
  if (std::ranges::any_of(again_, [](const Again& again) { return again.drafted > 1; })) out.insert(1);
  return {out.begin(), out.end()};
}

}  // namespace winnow::engine
