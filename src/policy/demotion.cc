#include <cmath>

#include "policy/merging.h"
#include "policy/rows.h"
#include "policy/step.h"

namespace winnow::policy {

namespace {

double cosine(std::span<const float> a, std::span<const float> b) {
  double product = 0;
  double a2 = 0;
  double b2 = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    product += static_cast<double>(a[i]) * b[i];
    a2 += static_cast<double>(a[i]) * a[i];
    b2 += static_cast<double>(b[i]) * b[i];
  }
  return a2 > 0 && b2 > 0 ? product / std::sqrt(a2 * b2) : 0;
}

}  // namespace

/// The vectors of one entry of a lane.
struct Demotion::Entry {
  Entry(const Demotion& d, int slot) : key(static_cast<std::size_t>(d.view_.shape.head_dim)), value(key.size()), compared(key.size()) {
    read(d, slot);
  }
  void read(const Demotion& d, int slot) {
    const auto& lanes = d.view_.lanes;
    lanes.key(d.head_, slot, key);
    lanes.value(d.head_, slot, value);
    compared = key;
    if (d.how_.rotated) lanes.shape().unrotates->shift(compared.data(), lanes.position(d.head_, slot));
  }

  std::vector<float> key;  ///< un-rotated
  std::vector<float> value;
  std::vector<float> compared;  ///< the key as it is compared
};

void Demotion::demote(int slot) const {
  auto& lanes = view_.lanes;
  lanes.unrotate(head_);
  const bool room = how_.merges() && how_.room(view_.limit[static_cast<std::size_t>(head_)]) > 0;
  const Target target = room ? most_alike(slot) : Target{};
  if (target.slot < 0 || target.likeness < how_.tau) return lanes.remove(head_, slot);
  const float scale = merge_vectors(slot, target.slot);
  if (how_.merged == Merged::follows) {
    lanes.follow(head_, slot, target.slot, scale);
  } else {
    lanes.remove(head_, slot);
  }
}

Demotion::Target Demotion::most_alike(int slot) const {
  const Entry given_up(*this, slot);
  Entry other = given_up;
  Target best;
  for (int s = 0; s < view_.lanes.length(head_); ++s) {
    if (s == slot || !evictable(view_, view_.lanes.position(head_, s))) continue;
    other.read(*this, s);
    const double likeness = redundancy(how_, cosine(given_up.compared, other.compared), cosine(given_up.value, other.value));
    if (best.slot < 0 || likeness > best.likeness) best = {s, likeness};
  }
  return best;
}

double Demotion::class_worth(int slot) const {
  double sum = worth_[static_cast<std::size_t>(slot)];
  const auto range = view_.lanes.followers(head_).of(slot);
  for (int i = range.first; i < range.end; ++i) sum += worth_[static_cast<std::size_t>(view_.lanes.length(head_) + i)];
  return sum;
}

float Demotion::merge_vectors(int slot, int into) const {
  const Entry given_up(*this, slot);
  Entry merged(*this, into);
  ClassMean mean(merged.key.size());
  mean.add(merged.key, merged.value, class_worth(into));
  mean.add(given_up.key, given_up.value, class_worth(slot));
  const double length = norm(merged.key);
  mean.store(how_, merged.key, merged.value);
  view_.lanes.overwrite(head_, into, merged.key, merged.value);
  return length > 0 ? static_cast<float>(norm(given_up.key) / length) : 0.0F;
}

}  // namespace winnow::policy
