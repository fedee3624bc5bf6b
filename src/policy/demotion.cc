// SPDX-License-Identifier: Apache-2.0
#include "policy/demotion.h"

#include <cmath>

#include "attention/products.h"
#include "base/as_size.h"
#include "policy/rows.h"
#include "policy/step.h"

namespace winnow::policy {

namespace {

using Cosines = std::vector<float>;

/// Calls each(run, its cosines) for the runs of a lane that have rows. Returns all cosines, by slot.
template <class Each>
Cosines cosines_with(const std::vector<cache::LaneRun>& runs, const Each& each) {
  Cosines out;
  for (const auto& run : runs) {
    if (run.centres != nullptr) continue;
    out.resize(out.size() + as_size(run.keys.count));
    each(run, std::span(out).last(run.keys.count));
  }
  return out;
}

}  // namespace

/// Vectors of one entry of a lane.
struct Demotion::Entry {
  Entry(const Demotion& d, int slot) : key(as_size(d.view_.shape.head_dim)), value(key.size()) {
    d.view_.lanes.key(d.head_, slot, key);
    d.view_.lanes.value(d.head_, slot, value);
    if (d.magnitude() != 1) stretch(d.rope(), 1 / d.magnitude(), key);
  }

  std::vector<float> key;  ///< un-rotated, without an uneven magnitude of RoPE
  std::vector<float> value;
};

const Rope& Demotion::rope() const { return *view_.lanes.shape().unrotates; }
float Demotion::magnitude() const { return uneven_magnitude(rope(), view_.shape.head_dim); }

void Demotion::demote(int slot) const {
  auto& lanes = view_.lanes;
  lanes.unrotate(head_);
  const bool room = how_.merges() && how_.room(view_.limit[head_]) > 0;
  const Target target = room ? most_alike(slot) : Target{};
  if (target.slot < 0 || target.likeness < how_.tau) return lanes.remove(head_, slot);
  const float scale = merge_vectors(slot, target.slot);
  if (how_.merged == Merged::as_entry) {
    lanes.merge_into(head_, slot, target.slot, scale);
  } else {
    lanes.remove(head_, slot);
  }
}

std::vector<float> Demotion::cosines_of_keys(const Entry& entry, int slot, const std::vector<cache::LaneRun>& runs,
                                             std::span<const float> by_value) const {
  const float least = how_.least_value_cosine();
  if (!how_.rotated && magnitude() == 1) {
    return cosines_with(runs, [&](const cache::LaneRun& run, std::span<float> out) {
      attention::cosines_where(by_value.subspan(run.first, out.size()), least, run.keys, entry.key, out);
    });
  }
  // Rotating one key by the distance between the two is equivalent to rotating each to its position.
  const auto& lanes = view_.lanes;
  Cosines out(by_value.size());
  for (int other = 0; other < lanes.length(head_); ++other) {
    const auto at = as_size(other);
    if (std::abs(by_value[at]) < least) continue;
    Entry compared(*this, other);
    if (how_.rotated)
      rope().shift(compared.key.data(),
                   static_cast<std::int64_t>(lanes.position(head_, other)) - lanes.position(head_, slot));
    const auto* const row = reinterpret_cast<const std::byte*>(compared.key.data());
    attention::cosines({row, compared.key.size() * sizeof(float), 1, lanes.shape().head_dim, ElementType::f32},
                       entry.key, std::span(out).subspan(at, 1));
  }
  return out;
}

Demotion::Target Demotion::most_alike(int slot) const {
  const Entry demoted(*this, slot);
  std::vector<cache::LaneRun> runs;
  view_.lanes.runs(head_, {0, view_.lanes.length(head_)}, runs);
  const auto by_value = cosines_with(runs, [&](const cache::LaneRun& run, std::span<float> out) {
    attention::cosines(run.values, demoted.value, out);
  });
  const auto by_key = cosines_of_keys(demoted, slot, runs, by_value);
  Target best;
  view_.lanes.for_each_span(head_, [&](const cache::LaneSpan& stretch) {
    for (int i = 0; i < stretch.count(); ++i) {
      const int other = stretch.first + i;
      const auto at = as_size(other);
      if (other == slot || !evictable(view_, stretch.positions[i])) continue;
      const double likeness = redundancy(how_, by_key[at], by_value[at]);
      if (best.slot < 0 || likeness > best.likeness) best = {other, likeness};
    }
  });
  return best;
}

double Demotion::class_worth(int slot) const {
  double sum = worth_(slot);
  const auto range = view_.lanes.merged_entries(head_).of(slot);
  for (int i = range.first; i < range.end; ++i) sum += worth_(view_.lanes.length(head_) + i);
  return sum;
}

float Demotion::merge_vectors(int slot, int into) const {
  const Entry demoted(*this, slot);
  Entry merged(*this, into);
  ClassMean mean(merged.key.size());
  mean.add(merged.key, merged.value, class_worth(into));
  mean.add(demoted.key, demoted.value, class_worth(slot));
  const double length = norm(merged.key);
  mean.store(how_, merged.key, merged.value);
  if (magnitude() != 1) stretch(rope(), magnitude(), merged.key);
  view_.lanes.overwrite(head_, into, merged.key, merged.value);
  return length > 0 ? static_cast<float>(norm(demoted.key) / length) : 0.0F;
}

}  // namespace winnow::policy
