// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "winnow/counted_vector.h"
#include "winnow/export.h"

/// Facts about a layer for methods and their observers.
namespace winnow::policy {

/// Facts about a layer that are known before anything has been read.
struct LayerPrompt {
  int tokens = 0;
  int group = 1;     ///< query heads of a KV head
  int head_dim = 0;  ///< d
  int kv_heads = 1;
  int question = 0;  ///< of the tokens, the last ones that are the question; 0: not known

  int query_heads() const { return group * kv_heads; }
};

/// One score for each entry of each KV head, [H_kv][n]. The highest are kept.
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

/// The queries of a layer on texts of the user's, before RoPE.
struct QueryStatistics {
  std::vector<float> mean;          ///< [H_q][d]
  std::vector<float> mean_lengths;  ///< [H_q][d / 2] of each pair of elements, in the order of Rope::pair()
  bool operator==(const QueryStatistics&) const = default;
};

/// A calibration of one layer without a window (`winnow calibrate`): its queries, and a linear map of the row that a
/// token's query, key and value are made of, which predicts how much its entry will matter. Empty where the session has
/// no calibration.
struct WINNOW_EXPORT LayerCalibration {
  std::vector<float> weights = {};  ///< [H_kv][n_embd]
  std::vector<float> bias = {};     ///< [H_kv]
  QueryStatistics queries = {};     ///< of all layers that read its keys

  /// The prediction from one such row, [n_embd].
  float score(int kv_head, const float* row) const;
  bool operator==(const LayerCalibration&) const = default;
};

}  // namespace winnow::policy
