// SPDX-License-Identifier: Apache-2.0
#include "policy/pages.h"

#include <algorithm>
#include <vector>

#include "base/as_size.h"
#include "policy/rows.h"
#include "policy/top.h"

namespace winnow::policy {

namespace {

/// A page's summary is the maximum and the minimum of its keys in each channel, [2][d].
void widen(std::span<float> summary, std::span<const float> key, bool first) {
  const std::size_t dim = key.size();
  for (std::size_t i = 0; i < dim; ++i) {
    summary[i] = first ? key[i] : std::max(summary[i], key[i]);
    summary[dim + i] = first ? key[i] : std::min(summary[dim + i], key[i]);
  }
}

void summarize(cache::LayerLanes& lanes, int page) {
  std::vector<float> key(lanes.shape().head_dim);
  std::vector<float> summary(2 * key.size());
  for (int head = 0; head < lanes.shape().kv_heads; ++head) {
    const int length = lanes.length(head);
    for (int slot = 0; slot < length; ++slot) {
      lanes.key(head, slot, key);
      widen(summary, key, slot % page == 0);
      if ((slot + 1) % page == 0 || slot + 1 == length) lanes.summaries().set(head, slot / page, summary);
    }
  }
}

void summarize_token(const StepView& view, int page) {
  std::vector<float> key(view.shape.head_dim);
  std::vector<float> summary(2 * key.size());
  for (int head = view.first_head; head < view.end_head; ++head) {
    const int slot = view.lanes.length(head) - 1;
    view.lanes.key(head, slot, key);
    const auto stored = view.lanes.summaries().rows(head, slot / page, slot / page + 1);
    cache::decode_row(stored.type, stored.row(0), summary);
    widen(summary, key, slot % page == 0);
    view.lanes.summaries().set(head, slot / page, summary);
  }
}

/// Vector [2][d] whose product with a page's summary is an upper bound of the group's products with its keys: it
/// selects the page's maximum in channels where the query is positive, and its minimum where the query is negative.
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

/// The best pages of one head and the last page, as ranges of slots.
cache::AttendPlan best_pages(const AttendView& view, int head, int page, const PageCount& how_many) {
  const int length = view.lanes.length(head);
  const int pages = (length + page - 1) / page;
  const int count = how_many(view.terms, length, pages);
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

}  // namespace

Option page_option(int entries) { return {"page", Option::Integer{entries, 4, 4096}, "entries of a page"}; }

Option dense_option() { return {"dense", Option::Integer{2, 0, 1024}, "first layers that read all kept entries"}; }

void read_pages(Method& method, const Options& options, const PageCount& count) {
  const int page = options.integer("page");
  const int dense = options.integer("dense");
  method.retrieves = true;
  method.lanes.summary_rows = 2;
  method.lanes.summary_block = page;
  method.lanes.summarize = {"largest and smallest value of each page's keys in each channel",
                            [page](cache::LayerLanes& lanes, const Terms&) { summarize(lanes, page); }};
  method.decoding.step_sees_attention = false;
  method.decoding.step = {"nothing; the last page's summary includes the new token",
                          [page](const StepView& view) { summarize_token(view, page); }};
  method.decoding.attend = {"to the pages with the largest bounds on their products, chosen for each KV head",
                            [page, dense, count](const AttendView& view, std::span<cache::AttendPlan> plans) {
                              if (view.layer < dense) return;
                              for (int head = view.first_head; head < view.end_head; ++head)
                                plans[head] = best_pages(view, head, page, count);
                            }};
}

}  // namespace winnow::policy
