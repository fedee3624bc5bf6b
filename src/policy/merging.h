// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "policy/method.h"

/// Entries that share vectors: EMS (Li et al., 2024, section 4). A class has a centre, whose direction and value become
/// means over the class, and members.
namespace winnow::policy {

/// What says how alike two entries are.
enum class Compare : std::uint8_t { key, value, both };

/// What becomes of an entry that is merged.
enum class Merged : std::uint8_t {
  stays,     ///< it stays as a merged entry of its centre, at its own place and with its own key length
  vanishes,  ///< the centre stands for it
};

struct Merging {
  double gamma = 4;  ///< entries that take part in attention, centres and last tokens included, for each of the budget
  double tau = 0.6;  ///< what is less alike than this is not merged but goes; from 1 on that is everything
  Compare compare = Compare::both;
  bool clamp = false;     ///< cosines below 0 count as 0
  bool rotated = false;   ///< keys are compared as they are rotated, not before RoPE
  bool normalize = true;  ///< a class's direction has length 1
  Merged merged = Merged::stays;

  /// Equal entries are alike by 1, give or take a rounding, which must not decide: a `tau` of 1 merges nothing.
  bool merges() const { return gamma > 1 && tau < 1; }
  /// Least magnitude of a cosine of values with which an entry can be joined, whatever its key: the cosine of keys need
  /// not be known where that of values is less.
  float least_value_cosine() const;
  /// Merged entries that a lane of a budget may have.
  int room(int budget) const;
};

/// Lengths of two keys and values that are compared count as 1, so that only directions matter; of a vector of length 0
/// the cosine is 0.
double redundancy(const Merging& how, double cosine_of_keys, double cosine_of_values);

/// Direction and value of a class: means over what is added, weighted; where all weights are 0, plain.
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

/// What goes joins the most alike of the entries that stay, but for the last tokens: fills plan.keys and plan.values of
/// the classes with members, and plan.merged entries. Weights are the scores.
void merge_prompt(const Merging& how, const LayerView& view, const Scores& scores, const AlwaysKept& always_kept,
                  cache::KeepPlan& plan);

/// A centre of a lane is given up for another: joins it or, where none is alike, leaves with its merged entries.
class Demotion {
 public:
  /// What an entry is worth: by slot, then by merged entry.
  using Worth = std::function<double(int entry)>;

  Demotion(const Merging& how, const StepView& view, int head, Worth worth)
      : how_(how), view_(view), head_(head), worth_(std::move(worth)) {}

  /// REQUIRES: `slot` is no last token's.
  void demote(int slot) const;

 private:
  struct Entry;
  /// A centre that is most alike, and how alike: -1 if there is no other. Where none is alike enough to be joined, any.
  struct Target {
    int slot = -1;
    double likeness = 0;
  };
  Target most_alike(int slot) const;
  /// 0 for rows whose values' cosines, `by_value`, are beyond what can be joined.
  std::vector<float> cosines_of_keys(const Entry& entry, int slot, const std::vector<cache::LanePiece>& pieces,
                                     std::span<const float> by_value) const;
  /// Sum of the worth of a class.
  double class_worth(int slot) const;
  /// Returns the length of the given-up key in units of the other's.
  float merge_vectors(int slot, int into) const;

  const Merging& how_;
  const StepView& view_;
  int head_;
  Worth worth_;
};

}  // namespace winnow::policy
