// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <vector>

#include "policy/methods/presets.h"
#include "policy/observers/columns.h"
#include "policy/rows.h"
#include "policy/step.h"
#include "policy/top.h"
#include "winnow/policy/score.h"

namespace winnow::policy::methods {

namespace {

constexpr int kRepresentatives = 4;

/// Division of a budget. Below 2,048 entries, blocks and initial tokens shrink with it.
struct Sizes {
  int block;
  int initial;
  int local;  ///< least number of recent entries that are read

  explicit Sizes(int budget)
      : block(std::clamp(static_cast<int>(std::bit_floor(static_cast<unsigned>(budget / 16))), 16, 128)),
        initial(std::min(128, budget / 8)),
        local(budget / 2) {}

  /// Number of blocks of a lane before the local window.
  int blocks(int length) const { return std::max(0, (length - initial - local) / block); }
  int first(int b) const { return initial + b * block; }
};

/// Stores the mean key of the block's representatives, the entries to which later queries attended the most. It is
/// un-rotated, because all far entries have one effective position.
void represent(cache::LayerLanes& lanes, int head, const Sizes& sizes, int block) {
  const int first = sizes.first(block);
  std::vector<float> received(sizes.block);
  for (int i = 0; i < sizes.block; ++i) received[i] = lanes.state(head, 0, first + i);
  std::vector<float> mean(lanes.shape().head_dim);
  std::vector<float> key(mean.size());
  std::vector<cache::LaneRun> runs;
  for (const auto i : top(received, kRepresentatives, {})) {
    runs.clear();
    lanes.runs(head, {first + i, first + i + 1}, runs);
    cache::decode_row(runs.front().keys.type, runs.front().keys.row(0), key);
    for (std::size_t c = 0; c < key.size(); ++c) mean[c] += key[c] / kRepresentatives;
  }
  lanes.summaries().set(head, block, mean);
}

/// Stores the representatives of all blocks before the local window of the next token, which makes the lane one entry
/// longer.
void represent_blocks(cache::LayerLanes& lanes, const Terms& terms) {
  const Sizes sizes(terms.budget);
  const int length = lanes.length(0);
  if (length < terms.budget) return;
  for (int head = 0; head < lanes.shape().kv_heads; ++head) {
    lanes.unrotate(head);
    for (int b = 0; b < sizes.blocks(length + 1); ++b) represent(lanes, head, sizes, b);
  }
}

/// Adds the query's attention to the entries of the local window. A block that has just left the window gets its
/// representatives.
void after_infllm_step(const StepView& view) {
  const Sizes sizes(view.terms.budget);
  std::vector<float> attention;
  for (int head = view.first_head; head < view.end_head; ++head) {
    auto& lanes = view.lanes;
    const int length = lanes.length(head);
    const int first = std::max(0, length - sizes.local);
    group_mean(view, head, attention, first);
    for (int slot = first; slot < length; ++slot) lanes.state(head, 0, slot) += attention[slot - first];
    if (length < view.terms.budget) continue;
    const bool first_time = !lanes.is_unrotated(head);
    lanes.unrotate(head);
    for (int b = first_time ? 0 : sizes.blocks(length); b < sizes.blocks(length + 1); ++b)
      represent(lanes, head, sizes, b);
  }
}

/// Relevance of each block to the token: the sum of all query heads' products with the representatives, with the query
/// at the distance of the local window's length.
std::vector<float> relevance(const AttendView& view, const Sizes& sizes, int blocks) {
  std::vector<float> out(blocks);
  for (int head = 0; head < view.shape.kv_heads; ++head) {
    std::vector<float> queries(view.shape.head_dim);
    for (int g = 0; g < view.shape.group(); ++g) {
      const auto query = view.query_of(head * view.shape.group() + g);
      for (std::size_t i = 0; i < queries.size(); ++i) queries[i] += query[i];
    }
    view.lanes.shape().unrotates->shift(queries.data(), static_cast<std::int64_t>(sizes.local) - view.position);
    add_products_with_summaries(view.lanes, head, queries, out);
  }
  return out;
}

void attend(const AttendView& view, std::span<cache::AttendPlan> plans) {
  const Sizes sizes(view.terms.budget);
  const int length = view.lanes.length(0);
  if (length <= view.terms.budget || !view.lanes.is_unrotated(0)) return;
  const int blocks = sizes.blocks(length);
  const int near = sizes.first(blocks);
  const auto far = cache::AttendRange::Keys::at_zero;
  const std::int64_t shift = static_cast<std::int64_t>(sizes.local) - view.position;
  cache::AttendPlan plan = {{0, sizes.initial, shift, far}};
  const int room = std::max(0, (view.terms.budget - sizes.initial - (length - near)) / sizes.block);
  for (const auto b : top(relevance(view, sizes, blocks), room, {}))
    plan.push_back({sizes.first(b), sizes.first(b) + sizes.block, shift, far});
  plan.push_back({near, length, 0});
  std::fill(plans.begin(), plans.end(), plan);
}

}  // namespace

/// InfLLM (Xiao et al., 2024, "InfLLM: Training-Free Long-Context Extrapolation for LLMs with an Efficient Context
/// Memory", section 3): nothing is evicted. Each query reads the first tokens, a local window of half the budget, and
/// the most relevant blocks between them, the same for all heads of a layer. Entries before the window have the
/// window's length as their effective distance. No options.
Preset infllm() {
  return {
      .name = "infllm",
      .summary =
          "keeps every entry; each query reads the first tokens, a local window and the most relevant blocks between "
          "them",
      .paper =
          "Xiao et al. 2024, InfLLM: Training-Free Long-Context Extrapolation for LLMs with an Efficient Context "
          "Memory",
      .options = {},
      .build = [](const Options&) {
        Method method;
        const auto attention = method.observers.add(
            observe_columns(
                "sum of the attention of the queries within the local window after each key",
                [](const LayerPrompt&, int budget) {
                  return attention::ColumnRequest{{attention::QueryRowSet::Kind::band, Sizes(budget).local - 1, {}}};
                }),
            {.state = true});
        method.selection.always_kept = {"nothing", [](const LayerPrompt&, int) { return AlwaysKept{}; }};
        method.selection.least = {"the initial tokens, a local window and a block",
                                  [](const LayerPrompt&) { return 63; }};
        method.selection.fixed = "infllm evicts nothing";
        method.retrieves = true;
        method.lanes.columns = {"attention received in the local window"};
        method.lanes.state = {"attention received in the local window",
                              [attention](const LayerView& view, const Scores&, const AlwaysKept&) {
                                return std::vector{reduce_group(view[attention], view.shape, Reduce::mean)};
                              }};
        method.positions = Positions::cache;
        method.lanes.summary_rows = 1;
        method.lanes.summarize = {"representatives of each block", represent_blocks};
        method.decoding.step = {"nothing; blocks that fall behind the local window get representatives",
                                after_infllm_step};
        method.decoding.heads_read_alike = true;
        method.decoding.attend = {"to the first tokens, the local window and the most relevant blocks", attend};
        return method;
      }};
}

}  // namespace winnow::policy::methods
