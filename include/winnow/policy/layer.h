// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "winnow/counted_vector.h"
#include "winnow/export.h"

/// Facts about a layer for methods and their observers.
namespace winnow::policy {

/// Facts about a layer that are known before anything has been read.
struct LayerPrompt {
  int tokens = 0;
  int group = 1;     ///< query heads per KV head
  int head_dim = 0;  ///< d
  int kv_heads = 1;
  int question = 0;  ///< number of last tokens that are the question; 0: unknown

  int query_heads() const { return group * kv_heads; }
};

/// A score for each entry of each KV head, [H_kv][n]. The entries with the highest scores are kept.
class Scores {
 public:
  Scores(int heads, int n)
      : heads_(heads), n_(n), values_(static_cast<std::size_t>(heads) * static_cast<std::size_t>(n)) {}

  int heads() const { return heads_; }
  int size() const { return n_; }
  /// Scores of one head, [n].
  std::span<float> head(int h) { return {values_.data() + offset(h), static_cast<std::size_t>(n_)}; }
  std::span<const float> head(int h) const { return {values_.data() + offset(h), static_cast<std::size_t>(n_)}; }
  /// All heads, one after the other.
  std::span<float> all() { return values_; }

 private:
  std::size_t offset(int h) const { return static_cast<std::size_t>(h) * static_cast<std::size_t>(n_); }

  int heads_;
  int n_;
  CountedVector<float> values_;
};

/// Calibration facts of one layer without a window, by the name of their CalibrationPart. Empty if the session has no
/// calibration.
class WINNOW_EXPORT LayerCalibration {
 public:
  using Facts = std::map<std::string, std::vector<float>, std::less<>>;

  LayerCalibration() = default;
  explicit LayerCalibration(Facts facts) : facts_(std::move(facts)) {}

  const Facts& facts() const { return facts_; }
  /// The numbers of this name. Throws UsageError if they are missing or not `count`.
  std::span<const float> numbers(std::string_view name, std::size_t count) const;
  bool operator==(const LayerCalibration&) const = default;

 private:
  Facts facts_;
};

}  // namespace winnow::policy
