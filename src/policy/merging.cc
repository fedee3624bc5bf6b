// SPDX-License-Identifier: Apache-2.0
#include "policy/merging.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "attention/products.h"
#include "base/as_size.h"
#include "cache/element.h"
#include "policy/rows.h"
#include "policy/top.h"

namespace winnow::policy {

namespace {

/// Entries that are compared with all centres at a time.
constexpr std::size_t kOthersTogether = 32;

/// Vectors of some entries of one head, [n][d] each.
struct Vectors {
  std::vector<float> keys;  ///< before RoPE, without its uneven magnitude
  std::vector<float> values;
};

std::span<float> row(std::vector<float>& rows, std::size_t i, std::size_t dim) {
  return std::span(rows).subspan(i * dim, dim);
}
std::span<const float> row(const std::vector<float>& rows, std::size_t i, std::size_t dim) {
  return std::span(rows).subspan(i * dim, dim);
}

Vectors vectors_of(const LayerView& view, int head, std::span<const std::int32_t> entries) {
  const auto dim = as_size(view.shape.head_dim);
  const auto& scratch = view.scratch;
  const float magnitude = uneven_magnitude(view.rope, view.shape.head_dim);
  Vectors out{std::vector<float>(entries.size() * dim), std::vector<float>(entries.size() * dim)};
  for (std::size_t i = 0; i < entries.size(); ++i) {
    cache::decode_row(scratch.type(), scratch.fetched_keys(head).row(entries[i]), row(out.keys, i, dim));
    cache::decode_row(scratch.type(), scratch.fetched_values(head).row(entries[i]), row(out.values, i, dim));
    view.rope.shift(row(out.keys, i, dim).data(), -static_cast<std::int64_t>(scratch.positions()[entries[i]]));
    if (magnitude != 1) stretch(view.rope, 1 / magnitude, row(out.keys, i, dim));
  }
  return out;
}

std::vector<float> norms_of(const std::vector<float>& rows, std::size_t dim) {
  std::vector<float> out;
  for (std::size_t i = 0; i * dim < rows.size(); ++i) out.push_back(static_cast<float>(norm(row(rows, i, dim))));
  return out;
}

/// Scales rows to length 1; rows of length 0 stay.
std::vector<float> directions(std::vector<float> rows, std::size_t dim) {
  for (std::size_t i = 0; i * dim < rows.size(); ++i) {
    const auto length = static_cast<float>(norm(row(rows, i, dim)));
    for (float& x : row(rows, i, dim)) x = length > 0 ? x / length : 0;
  }
  return rows;
}

/// Keys for comparison, scaled to length 1.
std::vector<float> compared_keys(const Merging& how, const LayerView& view, std::span<const std::int32_t> entries,
                                 std::vector<float> keys) {
  const auto dim = as_size(view.shape.head_dim);
  if (!how.rotated) return directions(std::move(keys), dim);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    view.rope.shift(row(keys, i, dim).data(), view.scratch.positions()[entries[i]]);
  }
  return directions(std::move(keys), dim);
}

/// The classes of one head at the end of a prompt.
class Classes {
 public:
  Classes(const Merging& how, const LayerView& view, int head, std::span<const float> scores,
          std::vector<std::int32_t> centres, std::vector<std::int32_t> others)
      : how_(how),
        view_(view),
        dim_(as_size(view.shape.head_dim)),
        scores_(scores),
        centres_(std::move(centres)),
        others_(std::move(others)),
        centre_vectors_(vectors_of(view, head, centres_)),
        other_vectors_(vectors_of(view, head, others_)),
        centre_norms_(norms_of(centre_vectors_.keys, dim_)),
        other_norms_(norms_of(other_vectors_.keys, dim_)),
        members_(centres_.size()) {
    assign();
  }

  bool any() const {
    return std::any_of(members_.begin(), members_.end(), [](const auto& members) { return !members.empty(); });
  }

  /// Vectors to store for the centres. A centre without other members keeps its own.
  Vectors merged() const {
    Vectors out = centre_vectors_;
    for (std::size_t c = 0; c < centres_.size(); ++c) {
      if (!members_[c].empty()) merge(c, row(out.keys, c, dim_), row(out.values, c, dim_));
    }
    return out;
  }

  std::vector<cache::KeepPlan::Joined> merged_entries() const {
    std::vector<cache::KeepPlan::Joined> out;
    for (std::size_t c = 0; c < centres_.size(); ++c) {
      for (const auto i : members_[c]) {
        out.push_back({others_[i], static_cast<std::int32_t>(c),
                       centre_norms_[c] > 0 ? other_norms_[i] / centre_norms_[c] : 0.0F});
      }
    }
    return out;
  }

 private:
  void assign() {
    const attention::PackedRows keys(compared_keys(how_, view_, centres_, centre_vectors_.keys), view_.shape.head_dim);
    const attention::PackedRows values(directions(centre_vectors_.values, dim_), view_.shape.head_dim);
    const auto other_keys = compared_keys(how_, view_, others_, other_vectors_.keys);
    const auto other_values = directions(other_vectors_.values, dim_);
    const auto stride = as_size(keys.stride());
    std::vector<float> by_key(kOthersTogether * stride);
    std::vector<float> by_value(kOthersTogether * stride);
    for (std::size_t first = 0; first < others_.size(); first += kOthersTogether) {
      const std::size_t count = std::min(kOthersTogether, others_.size() - first);
      if (how_.compare != Compare::value)
        keys.multiply(std::span(other_keys).subspan(first * dim_, count * dim_), by_key);
      if (how_.compare != Compare::key)
        values.multiply(std::span(other_values).subspan(first * dim_, count * dim_), by_value);
      for (std::size_t i = 0; i < count; ++i) assign_one(first + i, &by_key[i * stride], &by_value[i * stride]);
    }
  }

  void assign_one(std::size_t other, const float* by_key, const float* by_value) {
    std::size_t best = 0;
    double most = -2;
    for (std::size_t c = 0; c < centres_.size(); ++c) {
      const double likeness = redundancy(how_, by_key[c], by_value[c]);
      if (likeness > most) {
        most = likeness;
        best = c;
      }
    }
    if (most >= how_.tau) members_[best].push_back(other);
  }

  void merge(std::size_t c, std::span<float> key, std::span<float> value) const {
    ClassMean mean(dim_);
    mean.add(row(centre_vectors_.keys, c, dim_), row(centre_vectors_.values, c, dim_), weight(centres_[c]));
    for (const auto i : members_[c])
      mean.add(row(other_vectors_.keys, i, dim_), row(other_vectors_.values, i, dim_), weight(others_[i]));
    mean.store(how_, key, value);
  }

  double weight(std::int32_t entry) const { return scores_[entry]; }

  const Merging& how_;
  const LayerView& view_;
  std::size_t dim_;
  std::span<const float> scores_;
  std::vector<std::int32_t> centres_;
  std::vector<std::int32_t> others_;
  Vectors centre_vectors_;
  Vectors other_vectors_;
  std::vector<float> centre_norms_;
  std::vector<float> other_norms_;
  std::vector<std::vector<std::size_t>> members_;  ///< [centre]: indices into others_
};

/// The best evicted entries, as many as there is room for.
std::vector<std::int32_t> to_be_merged(std::span<const float> scores, const std::vector<std::int32_t>& kept, int room,
                                       const AlwaysKept& always_kept) {
  std::vector<float> left(scores.begin(), scores.end());
  for (const auto j : kept) left[j] = std::nanf("");  // worse than any
  return top(left, std::min(room, static_cast<int>(left.size() - kept.size())), always_kept);
}

}  // namespace

int Merging::room(int budget) const {
  const double room = std::floor((gamma - 1) * budget);
  return static_cast<int>(std::min(room, 1e9));
}

float Merging::least_value_cosine() const {
  constexpr double kRounding = 1e-3;  // far more than a cosine in f32 can exceed 1
  switch (compare) {
    case Compare::key:
      return 0;
    case Compare::value:
      return std::numeric_limits<float>::infinity();
    case Compare::both:
      break;
  }
  return static_cast<float>(std::max(0.0, tau) * (1 - kRounding));
}

double redundancy(const Merging& how, double cosine_of_keys, double cosine_of_values) {
  const auto clamped = [&](double cosine) { return how.clamp ? std::max(0.0, cosine) : cosine; };
  switch (how.compare) {
    case Compare::key:
      return clamped(cosine_of_keys);
    case Compare::value:
      return clamped(cosine_of_values);
    case Compare::both:
      break;
  }
  return clamped(cosine_of_keys) * clamped(cosine_of_values);
}

void ClassMean::add(std::span<const float> key, std::span<const float> value, double weight) {
  const double length = norm(key);
  for (std::size_t i = 0; i < key.size(); ++i) {
    const double direction = length > 0 ? key[i] / length : 0;
    direction_[i] += weight * direction;
    plain_direction_[i] += direction;
    value_[i] += weight * value[i];
    plain_value_[i] += value[i];
  }
  weights_ += weight;
  ++count_;
}

void ClassMean::store(const Merging& how, std::span<float> key, std::span<float> value) const {
  const bool plain = !(weights_ > 0);
  const auto& direction = plain ? plain_direction_ : direction_;
  const auto& mean = plain ? plain_value_ : value_;
  const double weights = plain ? count_ : weights_;
  const double length = how.normalize
                            ? std::sqrt(std::inner_product(direction.begin(), direction.end(), direction.begin(), 0.0))
                            : weights;
  const double own = norm(key);
  for (std::size_t i = 0; i < key.size(); ++i) {
    if (length > 0) key[i] = static_cast<float>(own * direction[i] / length);
    value[i] = static_cast<float>(mean[i] / weights);
  }
}

void merge_prompt(const Merging& how, const LayerView& view, const Scores& scores, const AlwaysKept& always_kept,
                  cache::KeepPlan& plan) {
  if (!how.merges()) return;
  const auto heads = plan.heads.size();
  plan.keys.resize(heads);
  plan.values.resize(heads);
  if (how.merged == Merged::as_entry) plan.merged_entries.resize(heads);
  std::vector<std::vector<std::int32_t>> others;
  for (const auto& kept : plan.heads) {
    others.push_back(to_be_merged(scores.head(static_cast<int>(others.size())), kept,
                                  how.room(static_cast<int>(kept.size())), always_kept));
  }
  fetch(view, plan, others);
  for (std::size_t h = 0; h < heads; ++h) {
    const int head = static_cast<int>(h);
    const auto& kept = plan.heads[h];
    const std::vector<std::int32_t> centres(kept.begin(), kept.end() - always_kept.recent);
    const Classes classes(how, view, head, scores.head(head), centres, std::move(others[h]));
    if (!classes.any()) continue;
    Vectors vectors = classes.merged();
    const auto last = vectors_of(view, head, std::span(kept).last(always_kept.recent));
    vectors.keys.insert(vectors.keys.end(), last.keys.begin(), last.keys.end());
    vectors.values.insert(vectors.values.end(), last.values.begin(), last.values.end());
    const float magnitude = uneven_magnitude(view.rope, view.shape.head_dim);
    const auto dim = as_size(view.shape.head_dim);
    for (std::size_t i = 0; magnitude != 1 && i < kept.size(); ++i)
      stretch(view.rope, magnitude, row(vectors.keys, i, dim));
    plan.keys[h] = std::move(vectors.keys);
    plan.values[h] = std::move(vectors.values);
    if (how.merged == Merged::as_entry) plan.merged_entries[h] = classes.merged_entries();
  }
}

}  // namespace winnow::policy
