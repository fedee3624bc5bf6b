// SPDX-License-Identifier: Apache-2.0
#include "engine/prefill_plan.h"

#include <algorithm>
#include <utility>

#include "base/as_size.h"
#include "engine/layers.h"
#include "engine/model_impl.h"
#include "engine/precision.h"
#include "engine/prefill.h"
#include "engine/prefill_branch.h"
#include "engine/replay.h"
#include "engine/session_impl.h"

namespace winnow::engine {

namespace {

/// Requests of the caches' methods for one kind of layer.
policy::LayerRequests requests_of(const PromptPass& prompt, const model::Hparams& hparams, const model::LayerSpec& spec,
                                  int past) {
  const auto& first = hparams.layer(first_global(hparams));
  std::vector<std::vector<policy::ObserverRequestPtr>> out;
  for (const auto& cache : prompt.caches) {
    const policy::Asking asking{.prompt = prompt_of(spec, prompt.size),
                                .budget = budget_entries(cache.options, hparams, prompt.size.tokens),
                                .first_layer = prompt_of(first, prompt.size),
                                .past = past,
                                .draft = cache.draft};
    out.push_back(policy::requests_of(method_of(cache.options, spec), asking, cache.reading));
  }
  return policy::LayerRequests(out);
}

/// The requests that need a replay.
std::vector<policy::ObserverRequestPtr> replays_of(const policy::LayerRequests& requests) {
  std::vector<policy::ObserverRequestPtr> out;
  for (const auto& request : requests.different()) {
    if (request->replay() != nullptr && !request->replay()->passages.empty()) out.push_back(request);
  }
  return out;
}

PrefillPlan::Branch branch_of(PromptPass prompt, const model::Hparams& hparams, int past) {
  PrefillPlan::Branch out{std::move(prompt), {}, {}};
  for (const auto& kind : hparams.kinds) out.requests.push_back(requests_of(out.prompt, hparams, kind, past));
  out.replays = replays_of(out.requests[as_size(hparams.kind_of[as_size(first_global(hparams))])]);
  return out;
}

std::vector<CacheOptions> caches_of(const PassSizes& sizes) {
  std::vector<CacheOptions> out;
  for (const auto& prompt : sizes.prompts) {
    for (const auto& cache : prompt.caches) out.push_back(cache.options);
  }
  return out;
}

}  // namespace

void ReadingBytes::reach(std::size_t vectors_then, std::size_t facts_then) {
  vectors = std::max(vectors, vectors_then);
  facts = std::max(facts, facts_then);
  rest = std::max(rest, vectors_then + facts_then);
}

PrefillPlan::PrefillPlan(const Session::Impl& session, PassSizes sizes)
    : text_(sizes.text),
      known_(sizes.known),
      past_(sizes.past),
      scratch_type_(engine::scratch_type(session.options.precision, caches_of(sizes))) {
  for (auto& prompt : sizes.prompts) {
    for (const auto& cache : prompt.caches) session.options.check(cache.options);
    branches_.push_back(branch_of(std::move(prompt), session.hparams, past_.tokens));
  }
  lay_out(session);
  bytes_ = bytes_of(session);
}

int PrefillPlan::prompt_rows() const {
  int rows = text_;
  for (const auto& branch : branches_) rows += branch.prompt.size.tokens - text_;
  return rows;
}

int PrefillPlan::first_seen(const model::Hparams& hparams) const {
  int out = text_;
  for (const auto& branch : branches_) {
    for (std::size_t kind = 0; kind < branch.requests.size(); ++kind) {
      const auto prompt = prompt_of(hparams.kinds[kind], branch.prompt.size);
      for (const auto& request : branch.requests[kind].different()) out = std::min(out, request->first_row(prompt));
    }
  }
  return out;
}

void PrefillPlan::lay_out(const Session::Impl& session) {
  const int most = session.options.chunk;
  add_chunks(text_ - known_, most, {.position = known_});
  for (std::size_t i = 0; i < branches_.size(); ++i) {
    const int question = branches_[i].prompt.size.tokens - text_;
    add_chunks(question, most, {.position = text_, .branch = i});
    branches_[i].last_row = (question > 0 ? rows_ : text_ - known_) - 1;
    add_passages(i, session);
    branches_[i].end = chunks_.size();
  }
}

void PrefillPlan::add_chunks(int rows, int most, const Chunk& kind) {
  for (const auto& part : chunks_of(rows, most)) {
    auto& chunk = chunks_.emplace_back(kind);
    chunk.rows = {rows_ + part.first, part.count};
    chunk.position += part.first;
  }
  rows_ += rows;
  capacity_ = std::max(capacity_, kind.position + rows);
}

void PrefillPlan::add_passages(std::size_t branch, const Session::Impl& session) {
  const int tokens = branches_[branch].prompt.size.tokens;
  const auto& replays = branches_[branch].replays;
  for (std::size_t i = 0; i < replays.size(); ++i) {
    for (const auto& passage : replays[i]->replay()->passages) {
      const attention::KeyRange recorded{passage.recorded.begin, std::min(passage.recorded.end, tokens)};
      add_chunks(rows_of(passage, replays[i]->draft(), session.model->impl().vocab), session.options.chunk,
                 {.position = tokens, .branch = branch, .replay = i, .recorded = recorded});
    }
  }
}

namespace {

/// The first layer of each kind without a window. Layers with windows are not observed.
std::vector<int> observed_layers(const model::Hparams& hparams) {
  std::vector<int> out;
  for (std::size_t kind = 0; kind < hparams.kinds.size(); ++kind) {
    if (hparams.kinds[kind].window > 0) continue;
    const auto first = std::ranges::find(hparams.kind_of, static_cast<int>(kind));
    out.push_back(static_cast<int>(first - hparams.kind_of.begin()));
  }
  return out;
}

/// Adds the column statistics that attention records for a branch, in the prompt itself or in a replay.
void add_columns(const PrefillPlan::Branch& branch, int kind, std::optional<std::size_t> replay,
                 std::vector<attention::PromptColumns>& out) {
  const auto add = [&](const policy::ObserverRequest& request) {
    for (auto& what : request.columns()) out.push_back({std::move(what), branch.prompt.size.tokens});
  };
  if (replay) return add(*branch.replays[*replay]);
  for (const auto& request : branch.requests[as_size(kind)].different()) {
    if (request->replay() == nullptr) add(*request);
  }
}

}  // namespace

/// Work space for observing a layer's attention, for the chunk that needs the most.
std::size_t PrefillPlan::work_bytes(int layer, const Session::Impl& session) const {
  const auto shape = shape_of(session.hparams, layer);
  const auto type = compute_type_of(session.options.precision);
  const int kind = session.hparams.kind_of[as_size(layer)];
  std::size_t most = 0;
  for (const auto& chunk : chunks_) {
    std::vector<attention::PromptColumns> observed;
    for (std::size_t i = 0; i < branches_.size(); ++i) {
      if (!chunk.branch || *chunk.branch == i) add_columns(branches_[i], kind, chunk.replay, observed);
    }
    if (observed.empty()) continue;
    attention::Chunk rows{.first = chunk.position, .count = chunk.rows.count, .past = past_.rows};
    if (chunk.replay) rows.recorded = chunk.recorded;
    most = std::max(most, attention::recording_bytes(shape, type, session.options.threads, rows, observed));
  }
  return most;
}

PrefillPlan::LayerBytes PrefillPlan::layer_bytes(int layer, const Session::Impl& session) const {
  const auto& hparams = session.hparams;
  LayerBytes out{.work = work_bytes(layer, session)};
  for (const auto& branch : branches_) {
    const auto site = observed_layer(hparams, layer, branch.prompt.size, past_.tokens);
    std::size_t ending = 0;
    for (const auto& request : branch.requests[as_size(hparams.kind_of[as_size(layer)])].different()) {
      const auto bytes = request->bytes(site);
      out.reading += bytes.reading;
      ending += bytes.ending;
    }
    out.ending = std::max(out.ending, ending);
  }
  return out;
}

ReadingBytes PrefillPlan::bytes_of(const Session::Impl& session) const {
  LayerBytes most;
  for (const int layer : observed_layers(session.hparams)) {
    const auto bytes = layer_bytes(layer, session);
    most = {std::max(most.reading, bytes.reading), std::max(most.ending, bytes.ending),
            std::max(most.work, bytes.work)};
  }
  std::size_t vectors =
      as_size(rows_) * session.executor.row_bytes(prompt_rows()) + Prefill::scratch_bytes(session.hparams, *this);
  std::size_t facts = most.reading + most.ending;
  std::size_t planned = 0;
  for (const auto& branch : branches_) {
    vectors += PrefillBranch::lane_bytes(session.hparams, branch.prompt);
    facts += PrefillBranch::class_bytes(branch.prompt);
    planned = std::max(planned, PrefillBranch::plan_bytes(session.hparams, branch.prompt));
  }
  ReadingBytes out{.work = most.work};
  out.reach(vectors + past_.bytes, facts + planned);
  return out;
}

}  // namespace winnow::engine
