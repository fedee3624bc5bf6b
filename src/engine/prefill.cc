// SPDX-License-Identifier: Apache-2.0
#include "engine/prefill.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "base/as_size.h"
#include "engine/cache_impl.h"
#include "engine/replay.h"
#include "policy/plan.h"

namespace winnow::engine {

/// What is read again after a prompt, and what that shows of the layer that is being read.
struct Prefill::Replay {
  struct Rows {
    int first_row = 0;
    int count = 0;
  };
  std::vector<policy::Passage> passages;
  std::vector<Rows> rows = {};  ///< of each passage
  attention::Observation observation;
};

/// One prompt of the pass: where its own rows lie in the hidden states, and the caches that it fills.
struct Prefill::Branch {
  int first_row = 0;  ///< of its question
  int own = 0;        ///< tokens of its question
  int tokens = 0;     ///< of the whole prompt
  std::vector<Cache> caches;
  std::vector<std::vector<policy::LayerBudget>> budgets;  ///< [cache][layer]
  std::vector<std::vector<std::size_t>> observed;         ///< [cache] indices into observations, in the method's order
  std::vector<attention::Observation> observations;       ///< of the layer that is being read, without repeats
  std::map<int, attention::QueryMoments> moments;         ///< by the prompt's first token that enters them
  std::vector<Replay> replays;                            ///< without repeats
  std::vector<std::size_t> replay_of;                     ///< [cache] index into replays; beyond them: none
  int longest_passage = 0;                                ///< rows
  Watchers watchers() {
    Watchers out;
    for (auto& o : observations) out.observations.push_back(&o);
    for (auto& [first, m] : moments) out.moments.push_back(&m);
    return out;
  }

  void add(const CacheOptions& options, const PrefillContext& context) {
    const auto& hparams = context.hparams;
    budgets.push_back(layer_budgets(options, hparams, tokens));
    add_replay(passages_of(options, hparams, tokens));
    caches.emplace_back(std::make_unique<Cache::Impl>(Cache::Impl{options,
                                                                  &hparams,
                                                                  &context.account,
                                                                  empty_lanes(options, hparams, context.account),
                                                                  tokens,
                                                                  terms_of(options, hparams, tokens),
                                                                  {}}));
  }

  void add_replay(const std::vector<policy::Passage>& passages) {
    constexpr auto kNone = ~std::size_t{0};
    const auto found =
        std::find_if(replays.begin(), replays.end(), [&](const Replay& r) { return r.passages == passages; });
    replay_of.push_back(passages.empty() ? kNone : as_size(found - replays.begin()));
    if (passages.empty() || found != replays.end()) return;
    const attention::Observe largest{{attention::ObservedRows::Kind::all, 0, {}}, attention::Reduction::max};
    replays.push_back({passages, {}, attention::Observation(largest, 0, tokens)});
  }

  const attention::Observation* replayed(std::size_t cache) const {
    const auto index = replay_of[cache];
    return index < replays.size() ? &replays[index].observation : nullptr;
  }

  /// `past` tokens come before the prompt.
  void begin_layer(int layer, const model::LayerSpec& spec, int past) {
    observations.clear();
    observed.clear();
    moments.clear();
    for (auto& replay : replays) replay.observation.begin_layer(spec.n_head);
    for (const auto& cache : caches) {
      const auto& method = cache.impl().method();
      auto& indices = observed.emplace_back();
      for (const auto& what : observed_by(method, cache.impl().terms[layer]))
        indices.push_back(observe(what, spec.n_head));
      const int first = method.reading.query_moments_from;
      if (first >= 0) moments.try_emplace(first, spec.n_head, spec.head_dim, spec.rope, past + first);
    }
  }

  /// The index of an observation.
  std::size_t observe(const attention::Observe& what, int query_heads) {
    const auto found =
        std::find_if(observations.begin(), observations.end(), [&](const auto& o) { return o.what() == what; });
    const auto index = as_size(found - observations.begin());
    if (found == observations.end()) observations.emplace_back(what, query_heads, tokens);
    return index;
  }
};

Prefill::Prefill(const PrefillContext& context, std::span<const Token> text,
                 std::span<const std::vector<Token>> questions, std::span<const CacheOptions> caches)
    : context_(context),
      text_(text.begin(), text.end()),
      branches_(branches_of(context, static_cast<int>(text.size()), questions, caches)),
      scratch_(context.account, scratch_type(context.options.precision, caches), kv_heads_of(context.hparams),
               longest(branches_)) {
  std::vector<Token> rows = text_;
  for (std::size_t i = 0; i < branches_.size(); ++i) {
    branches_[i].first_row = static_cast<int>(rows.size());
    rows.insert(rows.end(), questions[i].begin(), questions[i].end());
    add_passages(branches_[i], questions[i], rows);
  }
  hidden_ = Buffer(context.account, hidden_bytes(context.hparams, rows.size()), "the hidden states of the prompt");
  context_.executor.embed(rows, hidden_.as<float>().data());
}

Prefill::~Prefill() = default;

std::vector<Prefill::Branch> Prefill::branches_of(const PrefillContext& context, int text,
                                                  std::span<const std::vector<Token>> questions,
                                                  std::span<const CacheOptions> caches) {
  const CountingScope counting(context.account);  // what is read again is observed from the beginning on
  std::vector<Branch> out;
  for (const auto& question : questions) {
    Branch branch;
    branch.own = static_cast<int>(question.size());
    branch.tokens = text + branch.own;
    branch.longest_passage = replay_size(caches, context.hparams, context.vocab, branch.tokens).longest;
    for (const auto& options : caches) branch.add(options, context);
    out.push_back(std::move(branch));
  }
  return out;
}

int Prefill::longest(const std::vector<Branch>& branches) {
  int most = 0;
  for (const auto& branch : branches) most = std::max(most, branch.tokens + branch.longest_passage);
  return most;
}

void Prefill::add_passages(Branch& branch, std::span<const Token> question, std::vector<Token>& rows) const {
  std::vector<Token> prompt = text_;
  prompt.insert(prompt.end(), question.begin(), question.end());
  for (auto& replay : branch.replays) {
    for (const auto& passage : replay.passages) {
      const auto tokens = tokens_of(passage, prompt, context_.vocab);
      replay.rows.push_back({static_cast<int>(rows.size()), static_cast<int>(tokens.size())});
      rows.insert(rows.end(), tokens.begin(), tokens.end());
    }
  }
}

int Prefill::past_tokens() const { return context_.past == nullptr ? 0 : context_.past->tokens; }

std::vector<Prefilled> Prefill::run() {
  const CountingScope counting(context_.account);
  for (int layer = 0; layer < context_.hparams.n_layer; ++layer) run_layer(layer);
  std::vector<Prefilled> out;
  for (auto& branch : branches_) {
    auto logits = logits_of(branch);
    out.push_back({std::move(branch.caches), std::move(logits)});
  }
  return out;
}

void Prefill::run_layer(int layer) {
  Watchers everyone;
  for (auto& branch : branches_) {
    branch.begin_layer(layer, context_.hparams.layer(layer), past_tokens());
    everyone.add(branch.watchers());
  }
  const int text = static_cast<int>(text_.size());
  scratch_.begin_layer(kv_heads_of(context_.hparams.layer(layer)));
  run_rows(layer, 0, text, 0, everyone);
  for (auto& branch : branches_) {
    scratch_.truncate(text);
    run_rows(layer, branch.first_row, branch.own, text, branch.watchers());
    for (auto& replay : branch.replays) run_again(layer, branch, replay);
    scratch_.truncate(branch.tokens);
    compress(layer, branch);
  }
}

void Prefill::run_again(int layer, const Branch& branch, Replay& replay) {
  for (std::size_t i = 0; i < replay.passages.size(); ++i) {
    const auto& passage = replay.passages[i];
    scratch_.truncate(branch.tokens);
    run_rows(layer, replay.rows[i].first_row, replay.rows[i].count, branch.tokens,
             {{&replay.observation}, {}, {passage.first, passage.first + passage.count}});
  }
}

void Prefill::run_rows(int layer, int first_row, int count, int first_position, const Watchers& watchers) {
  const auto& hparams = context_.hparams;
  const int total = static_cast<int>(hidden_.size() / hidden_bytes(hparams, 1)) * hparams.n_layer;
  const int chunk = context_.past == nullptr ? context_.options.chunk : LaterAttention::kRows;
  for (int done = 0; done < count; done += chunk) {
    const int n = std::min(chunk, count - done);
    std::vector<std::int32_t> positions(n);
    std::iota(positions.begin(), positions.end(), past_tokens() + first_position + done);
    const int first = scratch_.extend(positions);
    const auto attention = attention_of(layer, first, watchers);
    float* rows = hidden_.as<float>().data() + static_cast<std::ptrdiff_t>(first_row + done) * hparams.n_embd;
    context_.executor.run_layer(layer, rows, positions, *attention);
    attention->rethrow();
    rows_done_ += n;
    if (context_.progress) context_.progress(static_cast<double>(rows_done_) / total);
  }
}

std::unique_ptr<PromptAttention> Prefill::attention_of(int layer, int first, const Watchers& watchers) {
  if (context_.past != nullptr)
    return std::make_unique<LaterAttention>(*context_.past, layer, scratch_, first, watchers);
  return std::make_unique<ChunkAttention>(context_.attention, shape_of(context_.hparams.layer(layer)), scratch_, first,
                                          watchers);
}

void Prefill::compress(int layer, Branch& branch) {
  const auto& spec = context_.hparams.layer(layer);
  for (std::size_t i = 0; i < branch.caches.size(); ++i) {
    auto& cache = branch.caches[i].impl();
    attention::Observed seen;
    for (const auto index : branch.observed[i]) seen.add(branch.observations[index]);
    const auto moments = branch.moments.find(cache.method().reading.query_moments_from);
    const policy::LayerView view{layer,          context_.hparams.n_layer,
                                 shape_of(spec), &scratch_,
                                 seen,           moments == branch.moments.end() ? nullptr : &moments->second,
                                 &spec.rope,     branch.replayed(i)};
    const auto& terms = cache.terms[layer];
    const auto& layer_budget = branch.budgets[i][layer];
    const auto plan = policy::plan(cache.method(), view, terms.budget, layer_budget);
    const Charge counted(context_.account, plan.bytes());
    cache.lanes.layer(layer).commit(plan, scratch_);
    if (cache.method().lanes.summary_rows > 0)
      cache.lanes.layer(layer).summaries().reserve(branch.tokens / cache.method().lanes.summary_block + 1);
    if (cache.method().decoding.prepare) cache.method().decoding.prepare.call(view, cache.lanes.layer(layer), terms);
    auto& limit = cache.limit.emplace_back();
    for (int head = 0; head < spec.n_head_kv; ++head) {
      limit.push_back(plan.keeps_all() ? layer_budget.mean : static_cast<int>(plan.heads[head].size()));
    }
  }
}

std::vector<float> Prefill::logits_of(const Branch& branch) {
  const int last = branch.own > 0 ? branch.first_row + branch.own - 1 : static_cast<int>(text_.size()) - 1;
  std::vector<float> logits(context_.hparams.n_vocab);
  context_.executor.logits(hidden_.as<float>().data() + static_cast<std::ptrdiff_t>(last) * context_.hparams.n_embd, 1,
                           logits.data());
  return logits;
}

}  // namespace winnow::engine
