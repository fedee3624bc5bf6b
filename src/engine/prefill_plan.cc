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

std::vector<PrefillPlan::Replay> replays_of(const policy::LayerRequests& requests) {
  std::vector<PrefillPlan::Replay> out;
  for (const auto& request : requests.different()) {
    const auto* const replay = request->replay();
    if (replay != nullptr && !replay->passages.empty()) out.push_back({request, replay->passages});
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
  has_states_ = can_have_states(session);
  if (has_states_) drop_known_passages();
  lay_out(session);
  bytes_ = bytes_of(session);
}

int PrefillPlan::prompt_rows() const {
  int rows = text_;
  for (const auto& branch : branches_) rows += branch.prompt.size.tokens - text_;
  return rows;
}

/// Sums over rows are the same in longer prompts if their units are never divided. Layers that read the same keys add
/// to one observer, each all of its rows, so that its result is no sum over rows.
bool PrefillPlan::can_have_states(const Session::Impl& session) const {
  const auto begins_unit = [](int row) { return row % TextBlock::kTokens == 0; };
  const auto divides_none = [&](const policy::Passage& passage) {
    return !passage.after || *passage.after >= text_ || begins_unit(*passage.after);
  };
  const auto has_units = [&](const Branch& branch) {
    return (branch.prompt.size.tokens == text_ || begins_unit(text_)) &&
           std::ranges::all_of(branch.replays, [&](const Replay& replay) {
             return std::ranges::all_of(replay.passages, divides_none);
           });
  };
  return session.hparams.n_kv_layer == session.hparams.n_layer && begins_unit(session.options.chunk) &&
         std::ranges::all_of(branches_, has_units);
}

/// The states of their observers have what these passages would record.
void PrefillPlan::drop_known_passages() {
  const auto is_known = [this](const policy::Passage& passage) { return passage.after && *passage.after <= known_; };
  for (auto& branch : branches_) {
    for (auto& replay : branch.replays) {
      if (!replay.request->state_name().empty()) std::erase_if(replay.passages, is_known);
    }
  }
}

int PrefillPlan::first_seen(const model::Hparams& hparams) const {
  int out = text_;
  for (const auto& branch : branches_) {
    for (std::size_t kind = 0; kind < branch.requests.size(); ++kind) {
      const auto prompt = prompt_of(hparams.kinds[kind], branch.prompt.size);
      for (const auto& request : branch.requests[kind].different()) {
        if (!has_states_ || request->state_name().empty()) out = std::min(out, request->first_row(prompt));
      }
    }
  }
  return out;
}

StateSizes PrefillPlan::states(const model::Hparams& hparams, int rows) const {
  StateSizes out;
  if (!has_states_) return out;
  for (const auto& branch : branches_) {
    for (int layer = 0; layer < hparams.n_kv_layer; ++layer) {
      const auto site = observed_layer(hparams, layer, branch.prompt.size, past_.tokens);
      for (const auto& request : branch.requests[as_size(hparams.kind_of[as_size(layer)])].different()) {
        const auto name = request->state_name();
        if (name.empty()) continue;
        auto& size = out[name];
        size.grows = request->state_grows();
        size.bytes.resize(as_size(hparams.n_kv_layer));
        size.bytes[as_size(layer)] = request->state_bytes(site, rows);
      }
    }
  }
  return out;
}

void PrefillPlan::lay_out(const Session::Impl& session) {
  const int most = session.options.chunk;
  std::vector<int> questions;                ///< [branch] first row
  std::vector<std::vector<Chunk>> passages;  ///< [branch] passages after the text
  std::vector<Chunk> early;                  ///< passages within the text
  rows_ = text_ - known_;
  for (std::size_t i = 0; i < branches_.size(); ++i) {
    questions.push_back(rows_);
    rows_ += branches_[i].prompt.size.tokens - text_;
    branches_[i].last_row = rows_ - 1;
    auto all = passages_of(i, rows_, session);
    for (const auto& passage : all) rows_ += passage.rows.count;
    const auto late = std::ranges::find_if(all, [&](const Chunk& passage) { return passage.position >= text_; });
    early.insert(early.end(), all.begin(), late);
    passages.emplace_back(late, all.end());
  }
  std::ranges::stable_sort(early, {}, &Chunk::position);
  add_prompt({.rows = {0, text_ - known_}, .position = known_}, early, most);
  for (std::size_t i = 0; i < branches_.size(); ++i) {
    const int question = branches_[i].prompt.size.tokens - text_;
    if (question == 0) branches_[i].last_row = text_ - known_ - 1;
    add_prompt({.rows = {questions[i], question}, .position = text_, .branch = i}, passages[i], most);
    branches_[i].end = chunks_.size();
  }
}

void PrefillPlan::add_prompt(Chunk rows, std::span<const Chunk> passages, int most) {
  for (const auto& passage : passages) {
    auto before = rows;
    before.rows.count = std::clamp(passage.position - rows.position, 0, rows.rows.count);
    add_chunks(before, most);
    rows.rows = {rows.rows.first + before.rows.count, rows.rows.count - before.rows.count};
    rows.position += before.rows.count;
    add_chunks(passage, most);
  }
  add_chunks(rows, most);
}

void PrefillPlan::add_chunks(const Chunk& rows, int most) {
  for (const auto& part : chunks_of(rows.rows.count, most)) {
    auto& chunk = chunks_.emplace_back(rows);
    chunk.rows = {rows.rows.first + part.first, part.count};
    chunk.position += part.first;
    chunk.after = rows.replay ? rows.position : chunk.position;
    capacity_ = std::max(capacity_, chunk.position + part.count);
  }
}

std::vector<PrefillPlan::Chunk> PrefillPlan::passages_of(std::size_t branch, int row,
                                                         const Session::Impl& session) const {
  const int tokens = branches_[branch].prompt.size.tokens;
  const auto& replays = branches_[branch].replays;
  std::vector<Chunk> out;
  for (std::size_t i = 0; i < replays.size(); ++i) {
    for (const auto& passage : replays[i].passages) {
      const int rows = rows_of(passage, replays[i].request->draft(), session.model->impl().vocab);
      const attention::KeyRange recorded{passage.recorded.begin, std::min(passage.recorded.end, tokens)};
      const int position = passage.after.value_or(tokens);
      out.push_back({.rows = {row, rows},
                     .position = position,
                     .branch = branch,
                     .replay = i,
                     .distance = position + rows_before_copy(passage, session.model->impl().vocab) - passage.first,
                     .recorded = recorded});
      row += rows;
    }
  }
  std::ranges::stable_sort(out, {}, &Chunk::position);
  return out;
}

bool PrefillPlan::overwrites_text() const {
  return std::ranges::any_of(chunks_, [this](const Chunk& chunk) { return chunk.replay && chunk.position < text_; });
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
  if (replay) return add(*branch.replays[*replay].request);
  for (const auto& request : branch.requests[as_size(kind)].different()) {
    if (request->replay() == nullptr) add(*request);
  }
}

}  // namespace

/// Work space for observing a layer's attention, for the chunk that needs the most.
std::size_t PrefillPlan::work_bytes(int layer, const Session::Impl& session) const {
  const auto shape = shape_of(session.hparams, layer);
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
    most = std::max(most, session.prefill_attention->recording_bytes(shape, rows, observed));
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
  const auto* const device = session.device();
  const std::size_t hidden = as_size(rows_) * session.executor.row_bytes(prompt_rows());
  const std::size_t scratch = Prefill::scratch_bytes(session.hparams, *this);
  std::size_t vectors = scratch + (device == nullptr ? hidden : 0);
  std::size_t facts = most.reading + most.ending;
  std::size_t planned = 0;
  for (const auto& branch : branches_) {
    vectors += PrefillBranch::lane_bytes(session.hparams, branch.prompt);
    facts += PrefillBranch::class_bytes(branch.prompt);
    planned = std::max(planned, PrefillBranch::plan_bytes(session.hparams, branch.prompt));
  }
  ReadingBytes out{.work = most.work};
  const bool copies = device != nullptr && device->has_kernels() && scratch_type_ != ElementType::f32;
  if (device != nullptr) out.device = hidden + (copies ? scratch + past_.bytes : 0);
  out.reach(vectors + past_.bytes, facts + planned);
  return out;
}

}  // namespace winnow::engine
