// SPDX-License-Identifier: Apache-2.0
#include "policy/sequence_layer.h"

#include <algorithm>
#include <utility>

namespace winnow::policy {

cache::LaneShape lane_shape(const Method& method, const KvType& type, const attention::Shape& shape, const Rope& rope) {
  return {shape.kv_heads,
          shape.head_dim,
          type,
          static_cast<int>(method.lanes.columns.size()),
          method.positions == Positions::absolute ? nullptr : &rope,
          method.positions == Positions::cache ? cache::EffectivePositions::cache : cache::EffectivePositions::absolute,
          method.lanes.summary_rows * shape.head_dim,
          method.lanes.summary_block,
          method.lanes.merged_entries};
}

SequenceLayer::SequenceLayer(MemoryAccount& account, const Method& method, const cache::LaneShape& shape,
                             const Terms& terms, LayerBudget budget)
    : method_(&method), lanes_(account, shape), terms_(terms), budget_(std::move(budget)) {}

SequenceLayer::SequenceLayer(const SequenceLayer& other, MemoryAccount& account)
    : method_(other.method_),
      lanes_(other.lanes_.clone(account)),
      terms_(other.terms_),
      budget_(other.budget_),
      limit_(other.limit_) {}

SequenceLayer SequenceLayer::clone(MemoryAccount& account) const { return {*this, account}; }

void SequenceLayer::commit(const cache::KeepPlan& plan, const LayerView& view) {
  lanes_.commit(plan, view.scratch);
  for (int head = 0; head < lanes_.shape().kv_heads; ++head)
    limit_.push_back(plan.keeps_all() ? budget_.mean : lanes_.length(head));
  summarize();
  if (method_->decoding.prepare) method_->decoding.prepare.call(view, lanes_, terms_);
}

void SequenceLayer::put_from(std::int32_t position, SequenceLayer&& other) {
  lanes_.put_from(position, std::move(other.lanes_));
  summarize();
}

void SequenceLayer::append(SequenceLayer&& other) { lanes_.append(std::move(other.lanes_)); }

void SequenceLayer::reserve(int count) {
  lanes_.reserve(growth(count));
  // A full lane may merge an entry to make room for a token, which needs one more merged entry.
  if (lanes_.shape().merged_entries > 0) lanes_.reserve_merged_entries(1);
  lanes_.summaries().reserve(summary_blocks(count));
}

int SequenceLayer::enter(int head, std::int32_t position, std::span<const float> key, std::span<const float> value) {
  if (!method_->decoding.evict || lanes_.length(head) < limit_[head]) return lanes_.append(head, position, key, value);
  const int slot = method_->decoding.evict.call(lanes_, head, terms_);
  lanes_.replace(head, slot, position, key, value);
  return slot;
}

void SequenceLayer::end_step() {
  if (!method_->decoding.evict) return;
  bool closed = false;
  for (int head = 0; head < lanes_.shape().kv_heads; ++head) {
    if (lanes_.length(head) <= limit_[head]) continue;
    lanes_.close_ring(head, limit_[head]);
    closed = true;
  }
  if (closed) lanes_.reserve(0);  // frees unused memory
}

void SequenceLayer::load(ByteCursor& from, int seen, std::vector<int> limit) {
  cache::load(lanes_, from, seen);
  limit_ = std::move(limit);
}

int SequenceLayer::longest_lane() const {
  int most = 0;
  for (int head = 0; head < lanes_.shape().kv_heads; ++head) most = std::max(most, lanes_.entries(head));
  return most;
}

void SequenceLayer::summarize() {
  if (!method_->lanes.summarize) return;
  lanes_.summaries().allocate(summary_blocks(0));
  method_->lanes.summarize.call(lanes_, terms_);
}

std::vector<int> SequenceLayer::summary_blocks(int count) const {
  std::vector<int> out;
  for (int head = 0; head < lanes_.shape().kv_heads; ++head)
    out.push_back(cache::summary_blocks(lanes_.shape(), lanes_.length(head) + count));
  return out;
}

/// Lanes of a method that evicts to make room grow up to their limits only, except for the tokens of a step after the
/// first.
int SequenceLayer::growth(int count) const {
  if (!method_->decoding.evict) return count;
  int most = 0;
  for (int head = 0; head < lanes_.shape().kv_heads; ++head) most = std::max(most, limit_[head] - lanes_.length(head));
  return std::min(most + count - 1, count);
}

}  // namespace winnow::policy
