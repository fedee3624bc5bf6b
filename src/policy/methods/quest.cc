// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "base/as_size.h"
#include "policy/methods/presets.h"
#include "policy/rows.h"
#include "policy/top.h"

namespace winnow::policy::methods {

namespace {

/// A page's summary is the largest and the least of its keys in each channel, [2][d].
void widen(std::span<float> summary, std::span<const float> key, bool first) {
  const std::size_t dim = key.size();
  for (std::size_t i = 0; i < dim; ++i) {
    summary[i] = first ? key[i] : std::max(summary[i], key[i]);
    summary[dim + i] = first ? key[i] : std::min(summary[dim + i], key[i]);
  }
}

void summarize_prompt(const LayerView& view, cache::LayerLanes& lanes, int page) {
  std::vector<float> summary(2 * as_size(view.shape.head_dim));
  for (int head = 0; head < view.shape.kv_heads; ++head) {
    for_each_row(view.scratch->keys(head), [&](int j, std::span<const float> key) {
      widen(summary, key, j % page == 0);
      if ((j + 1) % page == 0 || j + 1 == view.tokens()) lanes.summaries().set(head, j / page, summary);
    });
  }
}

void summarize_token(const StepView& view, int page) {
  std::vector<float> key(view.shape.head_dim);
  std::vector<float> summary(2 * key.size());
  std::vector<cache::LanePiece> pieces;
  for (int head = view.first_head; head < view.end_head; ++head) {
    const int slot = view.lanes.length(head) - 1;
    pieces.clear();
    view.lanes.pieces(head, {slot, slot + 1}, pieces);
    cache::decode_row(pieces.front().keys.type, pieces.front().keys.row(0), key);
    const auto stored = view.lanes.summaries().rows(head, slot / page, slot / page + 1);
    cache::decode_row(stored.type, stored.row(0), summary);
    widen(summary, key, slot % page == 0);
    view.lanes.summaries().set(head, slot / page, summary);
  }
}

/// What the bounds of a group's products with a page are the product of the page's summary with, [2][d]: a channel's
/// largest product is with the page's largest key where the query is positive and with the least where it is negative.
std::vector<float> bounding(const AttendView& view, int head) {
  const auto dim = as_size(view.shape.head_dim);
  std::vector<float> out(2 * dim);
  for (int g = 0; g < view.shape.group(); ++g) {
    const auto query = view.query_of(head * view.shape.group() + g);
    for (std::size_t i = 0; i < dim; ++i) {
      out[i] += std::max(query[i], 0.0F);
      out[dim + i] += std::min(query[i], 0.0F);
    }
  }
  return out;
}

/// The best `count` pages of one head and the last, as ranges of slots.
cache::AttendPlan best_pages(const AttendView& view, int head, int page, int count) {
  const int length = view.lanes.length(head);
  const int pages = (length + page - 1) / page;
  if (pages <= count) return {};
  std::vector<float> scores(pages);
  add_products_with_summaries(view.lanes, head, bounding(view, head), scores);
  auto chosen = top(scores, count - 1, {0, 1});
  chosen.push_back(pages - 1);
  cache::AttendPlan plan;
  for (const auto p : chosen) {
    cache::extend(plan, p * page, std::min(length, (p + 1) * page));
  }
  return plan;
}

/// The first `dense` layers read everything.
void attend(const AttendView& view, std::span<cache::AttendPlan> plans, int page, int dense) {
  if (view.layer < dense) return;
  const int count = (view.terms.budget + page - 1) / page;
  for (int head = view.first_head; head < view.end_head; ++head) plans[head] = best_pages(view, head, page, count);
}

}  // namespace

/// Quest (Tang et al., 2024, "Quest: Query-Aware Sparsity for Efficient Long-Context LLM Inference", section 3):
/// nothing is evicted; each query reads the pages whose keys could give it the largest products. The last page is
/// always read, and counts.
///   page   entries of a page
///   dense  first layers that read everything
Preset quest() {
  return {.name = "quest",
          .summary = "keeps everything; each query reads the pages that its largest products may lie in",
          .paper = "Tang et al. 2024, Quest: Query-Aware Sparsity for Efficient Long-Context LLM Inference",
          .options = {{"page", Option::Integer{16, 16, 4096}, "entries of a page"},
                      {"dense", Option::Integer{2, 0, 1024}, "first layers that read everything"}},
          .build = [](const Options& options) {
            const int page = options.integer("page");
            const int dense = options.integer("dense");
            Method method;
            method.selection.always_kept = {"nothing", [](const LayerPrompt&, int) { return AlwaysKept{}; }};
            method.selection.least = {"nothing", [](const LayerPrompt&) { return 0; }};
            method.selection.fixed = "quest evicts nothing";
            method.retrieves = true;
            method.lanes.summary_rows = 2;
            method.lanes.summary_block = page;
            method.decoding.prepare = {"largest and least keys of each page",
                                       [page](const LayerView& view, cache::LayerLanes& lanes, const Terms&) {
                                         summarize_prompt(view, lanes, page);
                                       }};
            method.decoding.step_sees_attention = false;
            method.decoding.step = {"nothing; the last page's summary takes in the token",
                                    [page](const StepView& view) { summarize_token(view, page); }};
            method.decoding.attend = {"to the pages with the largest bound on their products, by the KV head",
                                      [page, dense](const AttendView& view, std::span<cache::AttendPlan> plans) {
                                        attend(view, plans, page, dense);
                                      }};
            return method;
          }};
}

}  // namespace winnow::policy::methods
