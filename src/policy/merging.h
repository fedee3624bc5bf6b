// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "policy/views.h"

/// Entries that share vectors: EMS (Li et al., 2024, section 4). A class is a centre and the entries that are merged
/// into it; the centre's direction and value become means over the class.
namespace winnow::policy {

/// What says how alike two entries are.
enum class Compare : std::uint8_t { key, value, both };

/// What is left of an entry that is merged.
enum class Merged : std::uint8_t {
  as_entry,     ///< a merged entry, at its own position and with its own key length
  into_centre,  ///< nothing but its share in the centre
};

struct Merging {
  double gamma = 4;  ///< entries that take part in attention, centres and last tokens included, for each of the budget
  double tau = 0.6;  ///< entries less alike than this are not merged; from 1 on none is
  Compare compare = Compare::both;
  bool clamp = false;     ///< cosines below 0 count as 0
  bool rotated = false;   ///< keys are compared as they are rotated, not before RoPE
  bool normalize = true;  ///< a class's direction has length 1
  Merged merged = Merged::as_entry;

  /// Whether anything is merged. The likeness of equal entries is 1 but for rounding. Rounding must not decide, so a
  /// `tau` of 1 merges nothing.
  bool merges() const { return gamma > 1 && tau < 1; }
  /// Least magnitude of the cosine of two values with which their entries can be merged, whatever their keys. Where it
  /// is less, the cosine of the keys need not be computed.
  float least_value_cosine() const;
  /// Merged entries that a lane of a budget may have.
  int room(int budget) const;
};

/// How alike two entries are, from the cosines of their keys and values. The cosine with a vector of length 0 is 0.
double redundancy(const Merging& how, double cosine_of_keys, double cosine_of_values);

/// Direction and value of a class: weighted means over what is added, plain means where all weights are 0.
class ClassMean {
 public:
  explicit ClassMean(std::size_t dim) : direction_(dim), value_(dim), plain_direction_(dim), plain_value_(dim) {}
  /// A key of length 0 has no direction.
  void add(std::span<const float> key, std::span<const float> value, double weight);
  /// Stores them; the key gets the length that it had.
  void store(const Merging& how, std::span<float> key, std::span<float> value) const;

 private:
  std::vector<double> direction_;
  std::vector<double> value_;
  std::vector<double> plain_direction_;
  std::vector<double> plain_value_;
  double weights_ = 0;
  int count_ = 0;
};

/// Merges evicted entries into the kept ones that are most alike, which are not among the last tokens. Fills plan.keys
/// and plan.values of heads that have classes, and plan.merged_entries. Weights are the scores.
void merge_prompt(const Merging& how, const LayerView& view, const Scores& scores, const AlwaysKept& always_kept,
                  cache::KeepPlan& plan);

}  // namespace winnow::policy
