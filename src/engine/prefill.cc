// SPDX-License-Identifier: Apache-2.0
#include "engine/prefill.h"

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>
#include <utility>

#include "base/as_size.h"
#include "engine/output_lengths.h"
#include "engine/replay.h"
#include "engine/sequence.h"
#include "policy/plan.h"

namespace winnow::engine {

/// What is read again after a prompt, and what that shows of the layer that is being read.
struct Prefill::Replay {
  policy::Replay what;
  std::vector<Token> draft;  ///< that it repeats
  attention::Observation observation;
};

/// What is seen of a prompt in the layers that read the same keys.
struct Prefill::Look {
  std::vector<std::vector<std::size_t>> observed;    ///< [cache] indices into observations, in the method's order
  std::vector<attention::Observation> observations;  ///< without repeats
  std::vector<attention::TileAttention> tiles;       ///< for those of the observations that ask for tiles
  std::map<int, attention::QueryMoments> moments;    ///< by the prompt's first token that enters them
  std::deque<attention::QueryRows> query_rows;       ///< without repeats
  std::vector<attention::QueryRows*> rows_of;        ///< [cache] among them; null: none
  std::optional<PredictedScores> predicted;          ///< for methods that ask for it

  Watchers watchers() {
    Watchers out;
    for (auto& o : observations) {
      if (!o.what().tiles) out.observations.push_back(&o);
    }
    for (auto& t : tiles) out.tiles.push_back(&t);
    for (auto& [first, m] : moments) out.moments.push_back(&m);
    for (auto& rows : query_rows) out.query_rows.push_back(&rows);
    if (predicted) out.predictions.push_back(&*predicted);
    return out;
  }

  /// The index of an observation of a prompt of so many tokens.
  std::size_t observe(const attention::Observe& what, int query_heads, int tokens) {
    const auto found =
        std::find_if(observations.begin(), observations.end(), [&](const auto& o) { return o.what() == what; });
    const auto index = as_size(found - observations.begin());
    if (found == observations.end()) observations.emplace_back(what, query_heads, tokens);
    return index;
  }

  /// The rows of a prompt of so many tokens.
  attention::QueryRows* record(const attention::ObservedRows& which, const model::LayerSpec& spec, int tokens) {
    const auto found = std::ranges::find(query_rows, which, &attention::QueryRows::which);
    if (found != query_rows.end()) return &*found;
    return &query_rows.emplace_back(which, tokens, spec.n_head, spec.head_dim);
  }
};

/// One prompt of the pass, and the caches that it fills.
struct Prefill::Branch {
  int tokens = 0;                     ///< of the whole prompt
  int question = 0;                   ///< of them, the last ones that are its question; 0: not known
  int last_row = 0;                   ///< of it in the hidden states
  std::size_t end = 0;                ///< chunks that have passed through a layer when it is complete there
  CountedVector<TokenClass> classes;  ///< [tokens]
  std::vector<Cache> caches;
  std::vector<std::shared_ptr<Ranking>> rankings;  ///< [cache]; null: none
  std::map<int, Look> looks;                       ///< by the layer whose keys are read
  std::vector<Replay> replays;                     ///< without repeats
  std::vector<std::size_t> replay_of;              ///< [cache] index into replays; beyond them: none

  void add(const CacheOptions& options, const Shown& shown, const PrefillContext& context) {
    const PromptSize size(tokens, question);
    caches.emplace_back(std::make_unique<Sequence>(options, context.hparams, context.account, size));
    rankings.push_back(shown.ranking);
    add_replay(looks_on(rankings.size() - 1) ? engine::replay_of(options, context.hparams, tokens) : policy::Replay(),
               shown.draft);
  }

  /// Whether it is known what a cache keeps.
  bool is_ranked(std::size_t cache) const { return rankings[cache] && !rankings[cache]->entries.empty(); }

  bool looks_on(std::size_t cache) const {
    return !is_ranked(cache) || policy::looks_when_ranked(caches[cache].impl().method());
  }

  void add_replay(const policy::Replay& what, const std::vector<Token>& draft) {
    constexpr auto kNone = ~std::size_t{0};
    const auto found = std::find_if(replays.begin(), replays.end(),
                                    [&](const Replay& r) { return r.what == what && r.draft == draft; });
    replay_of.push_back(what.passages.empty() ? kNone : as_size(found - replays.begin()));
    if (what.passages.empty() || found != replays.end()) return;
    attention::Observe all_rows{{attention::ObservedRows::Kind::all, 0, {}}, what.reduction};
    all_rows.scale = what.scale;
    replays.push_back({what, draft, attention::Observation(all_rows, 0, tokens)});
  }

  /// Rows of the longest passage that is read again.
  int longest_passage(const model::Vocab& vocab) const {
    int most = 0;
    for (const auto& replay : replays) {
      for (const auto& passage : replay.what.passages) most = std::max(most, rows_of(passage, vocab));
    }
    return most;
  }

  const attention::Observation* replayed(std::size_t cache) const {
    const auto index = replay_of[cache];
    return index < replays.size() ? &replays[index].observation : nullptr;
  }

  /// `past` tokens come before the prompt. `calibration` is the layer's, or null.
  void begin_layer(int layer, const model::LayerSpec& spec, int past, const LayerCalibration* calibration) {
    Look look;
    if (spec.window == 0) {
      for (auto& replay : replays) replay.observation.begin_layer(spec.n_head);
    }
    for (std::size_t i = 0; i < caches.size(); ++i) {
      const auto& of_layer = caches[i].impl().layer(layer);
      const auto& method = of_layer.method();
      auto& indices = look.observed.emplace_back();
      const auto rows = past == 0 ? query_rows_of(method, of_layer.terms()) : std::nullopt;
      look.rows_of.push_back(rows ? look.record(*rows, spec, tokens) : nullptr);
      if (!looks_on(i)) continue;
      for (const auto& what : observed_by(method, of_layer.terms()))
        indices.push_back(look.observe(what, spec.n_head, tokens));
      const int first = method.reading.query_moments_from;
      if (first >= 0) look.moments.try_emplace(first, spec.n_head, spec.head_dim, spec.rope, past + first);
      if (method.selection.predicted && !look.predicted) look.predicted.emplace(*calibration, tokens);
    }
    for (auto& o : look.observations) {
      if (o.what().tiles) look.tiles.emplace_back(o, spec.head_dim);
    }
    looks.insert_or_assign(layer, std::move(look));
  }
};

namespace {

void add_scores(const policy::Scores& scores, int first, Ranking& to) {
  for (int head = 0; head < scores.heads(); ++head)
    std::ranges::copy(scores.head(head), to.scores.head(first + head).begin());
  ++to.layers;
}

/// What a layer keeps whose heads are those from `first` on.
cache::KeepPlan plan_by(const Ranking& ranking, int first, const policy::SequenceLayer& layer,
                        const policy::LayerView& view) {
  policy::Scores scores(view.shape.kv_heads, view.tokens());
  policy::LayerBudget budget = layer.budget();
  for (int head = 0; head < scores.heads(); ++head) {
    std::ranges::copy(ranking.scores.head(first + head), scores.head(head).begin());
    budget.heads.push_back(ranking.entries[as_size(first + head)]);
  }
  return policy::plan(layer.method(), view, layer.terms().budget, budget, scores);
}

}  // namespace

PromptSize size_of(std::size_t text, std::size_t question, int asked) {
  const int last = static_cast<int>(question);
  return {static_cast<int>(text) + last, last == 0 ? asked : text > 0 ? last : 0};
}

Prefill::Prefill(PrefillContext context, std::span<const Token> text, std::span<const std::vector<Token>> questions,
                 std::span<const CacheOptions> caches, const AllShown& shown)
    : context_(std::move(context)),
      branches_(branches_of(context_, static_cast<int>(text.size()), questions, caches, shown)),
      scratch_(context_.account, scratch_type(context_.options.precision, caches), kv_heads_of(context_.hparams),
               longest(branches_, context_.vocab)),
      hidden_(context_.executor, context_.hparams, context_.account, lay_out(text, questions),
              "the hidden states of the prompt") {
  if (context_.past != nullptr) past_.emplace(context_.account, scratch_.type());
}

Prefill::Prefill(PrefillContext context, std::span<const Token> prompt, const CacheOptions& keep)
    : Prefill(std::move(context), prompt, std::vector<std::vector<Token>>(1), std::span(&keep, 1)) {}

Prefill::~Prefill() = default;

std::vector<Prefill::Branch> Prefill::branches_of(const PrefillContext& context, int text,
                                                  std::span<const std::vector<Token>> questions,
                                                  std::span<const CacheOptions> caches, const AllShown& shown) {
  const CountingScope counting(context.account);  // what is read again is observed from the beginning on
  std::vector<Branch> out;
  for (std::size_t i = 0; i < questions.size(); ++i) {
    Branch branch;
    const auto size = size_of(as_size(text), questions[i].size(), context.asked);
    branch.tokens = size.tokens;
    branch.question = size.question;
    for (std::size_t c = 0; c < caches.size(); ++c)
      branch.add(caches[c], shown.empty() ? Shown() : shown[i][c], context);
    out.push_back(std::move(branch));
  }
  return out;
}

int Prefill::longest(const std::vector<Branch>& branches, const model::Vocab& vocab) {
  int most = 0;
  for (const auto& branch : branches) most = std::max(most, branch.tokens + branch.longest_passage(vocab));
  return most;
}

std::vector<Token> Prefill::lay_out(std::span<const Token> text, std::span<const std::vector<Token>> questions) {
  std::vector<Token> rows;
  add_chunks(text, {}, rows);
  const int shared = static_cast<int>(rows.size());
  for (std::size_t i = 0; i < branches_.size(); ++i) {
    const bool adds = !questions[i].empty();
    add_chunks(questions[i], {.position = shared, .branch = i}, rows);
    branches_[i].last_row = (adds ? static_cast<int>(rows.size()) : shared) - 1;
    std::vector<Token> prompt(text.begin(), text.end());
    prompt.insert(prompt.end(), questions[i].begin(), questions[i].end());
    branches_[i].classes.reserve(prompt.size());
    for (const Token token : prompt) branches_[i].classes.push_back(context_.vocab.class_of(token));
    for (auto& cache : branches_[i].caches) cache.impl().tokens = prompt;
    add_passages(i, prompt, rows);
    branches_[i].end = chunks_.size();
  }
  return rows;
}

void Prefill::add_chunks(std::span<const Token> tokens, const Chunk& kind, std::vector<Token>& rows) {
  const int first = static_cast<int>(rows.size());
  for (const auto& part : chunks_of(static_cast<int>(tokens.size()), context_.options.chunk)) {
    auto& chunk = chunks_.emplace_back(kind);
    chunk.rows = {first + part.first, part.count};
    chunk.position += part.first;
  }
  rows.insert(rows.end(), tokens.begin(), tokens.end());
}

void Prefill::add_passages(std::size_t branch, std::span<const Token> prompt, std::vector<Token>& rows) {
  const auto& replays = branches_[branch].replays;
  for (std::size_t i = 0; i < replays.size(); ++i) {
    for (const auto& passage : replays[i].what.passages) {
      const int tokens = branches_[branch].tokens;
      add_chunks(tokens_of(passage, prompt, replays[i].draft, context_.vocab),
                 {.position = tokens,
                  .branch = branch,
                  .replay = i,
                  .recorded = {passage.recorded.begin, std::min(passage.recorded.end, tokens)}},
                 rows);
    }
  }
}

int Prefill::past_tokens() const { return context_.past == nullptr ? 0 : context_.past->tokens(); }

std::vector<Prefilled> Prefill::run() {
  while (advance()) continue;
  std::vector<Prefilled> out;
  for (std::size_t i = 0; i < branches_.size(); ++i) out.push_back({take_caches(i), logits(i)});
  return out;
}

bool Prefill::advance() {
  const CountingScope counting(context_.account);
  if (next_ == chunks_.size()) return end_layer();
  if (next_ == 0) begin_layer();
  run(chunks_[next_++]);
  const bool is_last = context_.hparams.last_reader(kv_layer()) == layer_;
  for (auto& branch : branches_) {
    if (is_last && branch.end == next_) compress(branch);
  }
  return next_ < chunks_.size() || end_layer();
}

/// Also after the last chunk, so that a layer without experts costs no turn.
bool Prefill::end_layer() {
  if (hidden_.advance_layer(context_.pass, layer_)) return true;
  next_ = 0;
  return ++layer_ < context_.hparams.n_layer;
}

void Prefill::begin_layer() {
  const auto& spec = context_.hparams.layer(layer_);
  if (context_.watcher != nullptr) more_ = context_.watcher->begin_layer(layer_);
  if (kv_layer() == layer_) {
    for (auto& branch : branches_) branch.begin_layer(layer_, spec, past_tokens(), calibration_of(layer_));
    if (is_shared(layer_))
      shared_.try_emplace(layer_, context_.account, scratch_.type(), spec.n_head_kv, spec.head_dim,
                          scratch_.capacity());
    scratch_of(layer_).begin_layer(kv_heads_of(spec));
  }
  if (past_) context_.past->read(layer_, *past_);
  for (auto& branch : branches_) {
    for (auto& rows : branch.looks.at(kv_layer()).query_rows) rows.begin_layer();
  }
}

const LayerCalibration* Prefill::calibration_of(int layer) const {
  if (context_.calibration == nullptr || context_.hparams.layer(layer).window > 0) return nullptr;
  return &context_.calibration->layers[as_size(context_.hparams.place_of[layer])];
}

cache::LayerScratch& Prefill::scratch_of(int kv_layer) {
  const auto found = shared_.find(kv_layer);
  return found == shared_.end() ? scratch_ : found->second;
}

void Prefill::put_rows(const Chunk& chunk, std::size_t number) {
  const auto rows = aside_.find({kv_layer(), number});
  if (rows != aside_.end()) scratch_of(kv_layer()).put_rows(chunk.position, chunk.rows.count, rows->second.data());
}

void Prefill::copy_rows(const Chunk& chunk, std::size_t number) {
  if (!chunk.branch || kv_layer() != layer_ || !is_shared(layer_)) return;
  const auto& scratch = scratch_of(layer_);
  Buffer rows(context_.account, scratch.bytes_of_rows(chunk.rows.count), "keys and values of a question");
  scratch.copy_rows(chunk.position, chunk.rows.count, rows.data());
  aside_.insert_or_assign({layer_, number}, std::move(rows));
}

void Prefill::run(const Chunk& chunk) {
  std::vector<std::int32_t> positions(chunk.rows.count);
  std::iota(positions.begin(), positions.end(), past_tokens() + chunk.position);
  auto& scratch = scratch_of(kv_layer());
  scratch.truncate(chunk.position);
  scratch.extend(positions);
  const auto number = as_size(&chunk - chunks_.data());
  put_rows(chunk, number);
  auto attention = attention_of(chunk);
  hidden_.run_layer(context_.pass, layer_, chunk.rows.first, positions, attention);
  copy_rows(chunk, number);
  rows_done_ += chunk.rows.count;
  if (context_.progress) context_.progress(done());
}

double Prefill::done() const { return static_cast<double>(rows_done_) / (hidden_.rows() * context_.hparams.n_layer); }

/// All prompts look on while the text passes.
Watchers Prefill::watchers_of(const Chunk& chunk) {
  if (chunk.replay) {
    if (context_.hparams.layer(layer_).window > 0) return {};
    return {{&branches_[*chunk.branch].replays[*chunk.replay].observation}, {}, chunk.recorded};
  }
  Watchers out = more_;
  for (std::size_t i = 0; i < branches_.size(); ++i) {
    if (!chunk.branch || *chunk.branch == i) out.add(branches_[i].looks.at(kv_layer()).watchers());
  }
  return out;
}

PromptAttention Prefill::attention_of(const Chunk& chunk) {
  return {context_.attention, shape_of(context_.hparams, layer_), scratch_of(kv_layer()), chunk.position,
          watchers_of(chunk), past_ ? &*past_ : nullptr};
}

void Prefill::compress(Branch& branch) {
  const int of = kv_layer();
  auto& scratch = scratch_of(of);
  scratch.truncate(branch.tokens);
  if (context_.watcher != nullptr) context_.watcher->end_layer(of, scratch);
  const Look& look = branch.looks.at(of);
  std::optional<policy::OutputLengths> lengths;  // for all caches that ask
  for (std::size_t i = 0; i < branch.caches.size(); ++i) {
    auto& layer = branch.caches[i].impl().layer(of);
    auto view = view_of(context_.hparams, of, scratch);
    for (const auto index : look.observed[i]) view.observations.add(look.observations[index]);
    const auto moments = look.moments.find(layer.method().reading.query_moments_from);
    if (moments != look.moments.end()) view.moments = &moments->second;
    view.query_rows = look.rows_of[i];
    view.replayed = branch.replayed(i);
    view.classes = branch.classes;
    view.question = branch.question;
    view.budget = layer.terms().budget;
    if (look.predicted) view.predicted = &look.predicted->scores();
    if (const auto* const calibration = calibration_of(of)) view.query_statistics = &calibration->queries;
    if (wants_output_lengths(layer.method(), layer.terms())) {
      if (!lengths) lengths = output_lengths(context_.executor, context_.hparams, of, scratch);
      view.output_lengths = &*lengths;
    }
    compress(branch, i, layer, view);
  }
  branch.looks.erase(of);
}

void Prefill::compress(Branch& branch, std::size_t cache, policy::SequenceLayer& layer, const policy::LayerView& view) {
  Ranking* const ranking = branch.rankings[cache].get();
  const int budget = layer.terms().budget;
  const bool has_window = context_.hparams.layer(kv_layer()).window > 0;
  cache::KeepPlan plan;
  if (ranking == nullptr || (has_window && branch.is_ranked(cache))) {
    plan = policy::plan(layer.method(), view, budget, layer.budget());
  } else if (has_window) {
    return;
  } else if (branch.is_ranked(cache)) {
    plan = plan_by(*ranking, first_head(kv_layer()), layer, view);
  } else {
    add_scores(policy::scores_of(layer.method(), view, budget), first_head(kv_layer()), *ranking);
    if (ranking->layers == context_.hparams.n_global)
      ranking->entries = policy::spread_over_model(layer.method(), view, budget, ranking->scores);
    return;
  }
  const Charge counted(context_.account, plan.bytes());
  layer.commit(plan, view);
}

/// Of the heads of layers without a window that are ranked together, the layer's first.
int Prefill::first_head(int layer) const {
  int heads = 0;
  for (int l = 0; l < layer; ++l) {
    if (context_.hparams.layer(l).window == 0) heads += context_.hparams.layer(l).n_head_kv;
  }
  return heads;
}

std::span<const Cache> Prefill::caches(std::size_t prompt) const { return branches_[prompt].caches; }

std::vector<Cache> Prefill::take_caches(std::size_t prompt) { return std::move(branches_[prompt].caches); }

std::vector<float> Prefill::logits(std::size_t prompt) { return hidden_.logits(branches_[prompt].last_row); }

}  // namespace winnow::engine
