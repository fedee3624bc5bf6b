// SPDX-License-Identifier: Apache-2.0
#include "documents/assembly.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/as_size.h"
#include "base/format.h"
#include "engine/precision.h"
#include "winnow/error.h"

namespace winnow::documents {

namespace {

double cosine(std::span<const float> a, std::span<const float> b) {
  double product = 0;
  double aa = 0;
  double bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    product += static_cast<double>(a[i]) * static_cast<double>(b[i]);
    aa += static_cast<double>(a[i]) * static_cast<double>(a[i]);
    bb += static_cast<double>(b[i]) * static_cast<double>(b[i]);
  }
  return aa > 0 && bb > 0 ? product / std::sqrt(aa * bb) : 0;
}

void fuse(std::span<float> fresh, std::span<const float> old) {
  const double share = std::clamp(cosine(fresh, old), 0.0, 1.0);
  for (std::size_t i = 0; i < fresh.size(); ++i)
    fresh[i] = static_cast<float>(share * static_cast<double>(fresh[i]) + (1 - share) * static_cast<double>(old[i]));
}

/// Keys and values of some rows before recomputation.
class Before {
 public:
  Before(JointScratch& scratch, std::span<const std::int32_t> positions, std::size_t width)
      : scratch_(scratch), width_(width) {
    for (const auto position : positions) rows_.push_back(scratch.rows_below(position));
    keys_.resize(rows_.size() * width);
    values_.resize(rows_.size() * width);
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      scratch.keys(rows_[i], part(keys_, i));
      scratch.values(rows_[i], part(values_, i));
    }
  }

  void fuse_into_scratch() {
    std::vector<float> keys(width_);
    std::vector<float> values(width_);
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      scratch_.keys(rows_[i], keys);
      scratch_.values(rows_[i], values);
      fuse(keys, part(keys_, i));
      fuse(values, part(values_, i));
      scratch_.scratch().store(rows_[i], keys.data(), values.data());
    }
  }

 private:
  std::span<float> part(std::vector<float>& all, std::size_t i) const {
    return std::span(all).subspan(i * width_, width_);
  }

  JointScratch& scratch_;
  std::size_t width_;
  std::vector<std::int32_t> rows_;
  std::vector<float> keys_;
  std::vector<float> values_;
};

bool has(std::span<const std::int32_t> ascending, std::int32_t x) {
  return std::binary_search(ascending.begin(), ascending.end(), x);
}

}  // namespace

Assembly::Assembly(Session::Impl& session, const Joint& joint, const CacheOptions& options, int capacity,
                   KeyPlaces places)
    : session_(session),
      joint_(joint),
      scratch_(session.account, engine::scratch_type(session.options.precision, std::span(&options, 1)), joint,
               capacity, places),
      sequence_(std::make_unique<engine::Sequence>(options, session.hparams, session.account, joint.tokens())) {}

void Assembly::layer(int layer, const TokenRanges& kept, ChosenTokens& chosen, std::span<const std::int32_t> recomputed,
                     std::span<const int> top, std::span<const std::int32_t> fused) {
  scratch_.load(layer, kept);
  loaded_layer(layer, chosen, recomputed, top, fused);
}

void Assembly::loaded_layer(int layer, ChosenTokens& chosen, std::span<const std::int32_t> recomputed,
                            std::span<const int> top, std::span<const std::int32_t> fused) {
  session_.check_stop();
  Before before(scratch_, fused, as_size(scratch_.scratch().kv_heads()) * as_size(scratch_.scratch().head_dim()));
  stop_some(layer, chosen, recomputed, top);
  if (chosen.rows() > 0) {
    chosen.run(layer, scratch_.scratch(), plan_rows(layer, chosen, recomputed));
    scratch_.scratch().truncate(scratch_.loaded());
  }
  before.fuse_into_scratch();
  count_.recomputed += static_cast<std::int64_t>(recomputed.size());
  commit(layer);
}

/// Stores keys and values of tokens that no later layer recomputes, and drops these tokens. They do not depend on other
/// tokens of this layer.
void Assembly::stop_some(int layer, ChosenTokens& chosen, std::span<const std::int32_t> recomputed,
                         std::span<const int> top) {
  std::vector<int> ends;
  std::vector<int> goes;
  for (int row = 0; row < chosen.rows(); ++row) {
    const auto position = chosen.positions()[row];
    if (top[position] > layer) {
      goes.push_back(row);
    } else if (has(recomputed, position)) {
      ends.push_back(row);
    }
  }
  if (!ends.empty()) {
    const auto made = chosen.project(layer, ends);
    const auto width = made.keys.size() / ends.size();
    for (std::size_t i = 0; i < ends.size(); ++i) {
      const int row = scratch_.rows_below(chosen.positions()[ends[i]]);
      scratch_.scratch().store(row, made.keys.data() + i * width, made.values.data() + i * width);
    }
  }
  chosen.keep(goes);
}

RowPlan Assembly::plan_rows(int layer, const ChosenTokens& chosen, std::span<const std::int32_t> recomputed) {
  RowPlan plan;
  std::vector<std::int32_t> missing;  // tokens that are not kept here see their own stored entries
  for (const auto position : chosen.positions()) {
    plan.store.push_back(has(recomputed, position) ? scratch_.rows_below(position) : -1);
    plan.leading.push_back(scratch_.rows_below(position + 1));
    plan.own.push_back(scratch_.holds(position) ? -1 : scratch_.loaded() + static_cast<std::int32_t>(missing.size()));
    if (plan.own.back() >= 0) missing.push_back(position);
  }
  scratch_.append(layer, ranges_of(joint_, missing));
  return plan;
}

void Assembly::commit(int layer, const cache::KeepPlan& plan) {
  auto& kept = sequence_->layer(layer);
  kept.commit(plan, engine::view_of(session_.hparams, layer, scratch_.scratch()));
  const int heads = kept.lanes().shape().kv_heads;
  for (int head = 0; head < heads; ++head) count_.kept += kept.lanes().length(head);
  lanes_ += heads;
  if (session_.progress) session_.progress(static_cast<double>(layer + 1) / session_.hparams.n_layer);
}

Cache Assembly::finish() {
  sequence_->tokens = joint_.token_ids();
  count_.kept = count_.kept * session_.hparams.n_layer / lanes_;
  return Cache(std::move(sequence_));
}

}  // namespace winnow::documents
