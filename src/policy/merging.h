// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "policy/views.h"

/// Merging of entries, as in EMS (Li et al., 2024, section 4). A class is a centre and the entries that are merged into
/// it. The centre's direction and value become means over the class.
namespace winnow::policy {

/// Vectors whose cosine is the similarity of two entries.
enum class Compare : std::uint8_t { key, value, both };

/// Form in which a merged entry stays.
enum class Merged : std::uint8_t {
  as_entry,     ///< a merged entry, at its own position and with its own key length
  into_centre,  ///< it only changes the centre's vectors
};

struct Merging {
  double gamma = 4;  ///< entries in attention, centres and last tokens included, divided by the budget
  double tau = 0.6;  ///< least similarity for a merge; 1 or more: nothing is merged
  Compare compare = Compare::both;
  bool clamp = false;     ///< cosines below 0 count as 0
  bool rotated = false;   ///< keys are compared after RoPE, not before
  bool normalize = true;  ///< a class's direction is scaled to length 1
  Merged merged = Merged::as_entry;

  /// True if anything is merged. The similarity of equal entries is 1 up to rounding. A `tau` of 1 merges nothing, so
  /// that rounding does not decide.
  bool merges() const { return gamma > 1 && tau < 1; }
  /// Least magnitude of the cosine of two values for a merge, whatever their keys. Below it the cosine of the keys need
  /// not be computed.
  float least_value_cosine() const;
  /// The most merged entries of a lane with this budget.
  int room(int budget) const;
};

/// Similarity of two entries, from the cosines of their keys and values. The cosine with a vector of length 0 is 0.
double redundancy(const Merging& how, double cosine_of_keys, double cosine_of_values);

/// Direction and value of a class: weighted means of its entries, or plain means if all weights are 0.
class ClassMean {
 public:
  explicit ClassMean(std::size_t dim) : direction_(dim), value_(dim), plain_direction_(dim), plain_value_(dim) {}
  /// A key of length 0 has no direction.
  void add(std::span<const float> key, std::span<const float> value, double weight);
  /// Stores the means. The key keeps its length.
  void store(const Merging& how, std::span<float> key, std::span<float> value) const;

 private:
  std::vector<double> direction_;
  std::vector<double> value_;
  std::vector<double> plain_direction_;
  std::vector<double> plain_value_;
  double weights_ = 0;
  int count_ = 0;
};

/// Merges evicted entries into the most similar kept ones, except into the last tokens. Fills plan.keys and plan.values
/// of heads that have classes, and plan.merged_entries. Weights are the scores.
void merge_prompt(const Merging& how, const LayerView& view, const Scores& scores, const AlwaysKept& always_kept,
                  cache::KeepPlan& plan);

}  // namespace winnow::policy
