// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "lanes.h"

namespace winnow::device::test {

struct StepShape {
  int dim = 64;
  int heads = 1;
  int kv_heads = 1;
  std::vector<std::vector<int>> runs = {};  ///< of each row: entries in each separate run
  Element keys = Element::bf16;
  Element values = Element::bf16;
  float cap = 0;
  bool sinks = false;
  bool probabilities = false;
  int pairs = 0;  ///< that are turned; 0: none
  bool halves = false;
  bool positions = false;  ///< turn keys when they are read
  bool merged = false;     ///< add merged entries
  bool shifted = false;    ///< turn queries before they read
};

inline constexpr int kPositions = 5000;
inline constexpr int kItem = 256;      ///< maximal entries of an item
inline constexpr int kFirstRow = 100;  ///< number of a run's first row, to which centres refer

/// A run of a lane, on the device and on the host: rows, or merged entries of another run's rows.
struct Run {
  Run(Rows k, Rows v)
      : keys(std::move(k)),
        values(std::move(v)),
        key_bytes(keys.bytes),
        value_bytes(values.bytes),
        key_scales(keys.scales),
        value_scales(values.scales) {}

  Rows keys;
  Rows values;
  std::vector<std::int32_t> positions;  ///< of rows, then of merged entries
  std::vector<std::int32_t> centres;
  std::vector<float> factors;
  std::unique_ptr<Array<std::int32_t>> device_positions;
  std::unique_ptr<Array<std::int32_t>> device_centres;
  std::unique_ptr<Array<float>> device_factors;
  Array<std::uint8_t> key_bytes;
  Array<std::uint8_t> value_bytes;
  Array<std::uint16_t> key_scales;
  Array<std::uint16_t> value_scales;
};

/// Factors are split into two rounded parts; a rest remains. With f16 the second part can be subnormal. The values of
/// quantized rows are rounded to f16.
inline reference::Rounding rounding_of(const StepShape& shape) {
  const bool coarse = shape.keys == Element::bf16 || shape.keys == Element::f32;
  const double split = coarse ? 0x1p-16 : 0x1p-20;
  const double quantized = is_quantized(shape.keys) || is_quantized(shape.values) ? 0x1p-11 : 0;
  return {.factors = (split + quantized) / 2, .weights = split + quantized, .exponential = kExponential};
}

/// A decoding step, and its result by the slow reference.
class DecodeStep {
 public:
  explicit DecodeStep(const StepShape& shape)
      : shape_(shape),
        q_(normal(random_, rows() * z(shape.heads) * z(shape.dim), 2)),
        sinks_(normal(random_, z(shape.heads))),
        device_q_(q_),
        device_sinks_(sinks_),
        rotation_(shape.pairs, shape.halves, kPositions),
        out_(q_.size()),
        lse_(rows() * z(shape.heads)) {
    first_item_.push_back(0);
    for (std::size_t row = 0; row < rows(); ++row) {
      int entries = 0;
      for (const int n : shape.runs[row]) entries += n + merged_of(n);
      for (int head = 0; head < shape.kv_heads; ++head) {
        lanes_.emplace_back();
        probabilities_.push_back(std::make_unique<Array<float>>(z(group()) * z(entries)));
        int first = 0;
        for (const int n : shape.runs[row]) {
          add_run(static_cast<int>(row), head, n, first, entries);
          first += n + merged_of(n);
        }
        first_item_.push_back(static_cast<std::int32_t>(items_.size()));
      }
    }
  }

  void run() {
    const Array<DecodeItem> items(items_);
    const Array<std::int32_t> first_item(first_item_);
    const Array<float> partial((items_.size() * z(group()) * z(shape_.dim + 2) + 3) / 4 * 4);
    const DecodeTask task{.q = device_q_.address(),
                          .out = out_.address(),
                          .lse = shape_.probabilities ? lse_.address() : nullptr,
                          .items = items.address(),
                          .first_item = first_item.address(),
                          .partial = partial.address(),
                          .sinks = shape_.sinks ? device_sinks_.address() : nullptr,
                          .angles = shape_.pairs > 0 ? rotation_.angles() : Angles{},
                          .listed = shape_.positions || shape_.merged ? 1 : 0,
                          .key_element = shape_.keys,
                          .value_element = shape_.values,
                          .item_count = static_cast<std::int32_t>(items_.size()),
                          .rows = static_cast<std::int32_t>(rows()),
                          .heads = shape_.heads,
                          .kv_heads = shape_.kv_heads,
                          .dim = shape_.dim,
                          .scale = scale(),
                          .cap = shape_.cap};
    ASSERT_EQ(winnow_kernels()->decode(task, nullptr), nullptr);
    got_ = out_.read();
  }

  const std::vector<float>& out() const { return got_; }

  void expect_as_reference() const {
    for (std::size_t row = 0; row < rows(); ++row) {
      for (int head = 0; head < shape_.heads; ++head) expect_head(row, head);
    }
  }

 private:
  std::size_t rows() const { return shape_.runs.size(); }
  int group() const { return shape_.heads / shape_.kv_heads; }
  float scale() const { return 1 / std::sqrt(static_cast<float>(shape_.dim)); }

  /// The number of merged entries of a run with `rows` rows.
  int merged_of(int rows) const { return shape_.merged ? rows / 2 + 1 : 0; }
  /// The positions by which a row's queries are shifted.
  int shift_of(int row) const { return shape_.shifted ? row * 700 - 900 : 0; }

  void add_run(int row, int head, int count, int first, int stride) {
    auto& lane = lanes_.back();
    lane.push_back(std::make_unique<Run>(random_rows(random_, shape_.keys, count, shape_.dim),
                                         random_rows(random_, shape_.values, count, shape_.dim)));
    Run& run = *lane.back();
    const int merged = merged_of(count);
    const auto below = [this](int end) { return static_cast<std::int32_t>(random_() % static_cast<unsigned>(end)); };
    for (int i = 0; i < count + merged; ++i) run.positions.push_back(shape_.positions ? below(kPositions) : 0);
    for (int i = 0; i < merged; ++i) {
      run.centres.push_back(kFirstRow + below(count));
      run.factors.push_back(0.5F + static_cast<float>(i % 4) * 0.3F);
    }
    std::sort(run.centres.begin(), run.centres.end());
    run.device_positions = std::make_unique<Array<std::int32_t>>(run.positions);
    run.device_centres = std::make_unique<Array<std::int32_t>>(run.centres);
    run.device_factors = std::make_unique<Array<float>>(run.factors);
    for (int at = 0; at < count; at += kItem)
      add_item(row, head, run, {at, std::min(kItem, count - at), first + at, stride});
    for (int at = 0; at < merged; at += kItem) {
      add_item(row, head, run, {0, std::min(kItem, merged - at), first + count + at, stride});
      items_.back().positions = shape_.positions ? run.device_positions->address() + count + at : nullptr;
      items_.back().first_row = kFirstRow;
      items_.back().rows = run.device_centres->address() + at;
      items_.back().factors = run.device_factors->address() + at;
    }
  }

  /// Entries of an item: the first row, the count, the first one's place in its lane, and the stride.
  struct Part {
    int row;
    int count;
    int place;
    int stride;
  };

  void add_item(int row, int head, const Run& run, const Part& part) {
    const auto scales = [&](const Array<std::uint16_t>& all, Element element) -> const void* {
      return is_quantized(element) ? all.address() + part.row * padded(element, shape_.dim) / 32 : nullptr;
    };
    items_.push_back({.keys = run.key_bytes.address() + z(part.row) * bytes_of(shape_.keys, shape_.dim),
                      .values = run.value_bytes.address() + z(part.row) * bytes_of(shape_.values, shape_.dim),
                      .key_scales = scales(run.key_scales, shape_.keys),
                      .value_scales = scales(run.value_scales, shape_.values),
                      .probabilities = shape_.probabilities ? probabilities_.back()->address() + part.place : nullptr,
                      .positions = shape_.positions ? run.device_positions->address() + part.row : nullptr,
                      .rows = nullptr,
                      .factors = nullptr,
                      .row = row,
                      .kv_head = head,
                      .count = part.count,
                      .stride = part.stride,
                      .first_row = 0,
                      .shift = shift_of(row)});
  }

  /// Appends the keys and values of a run as a query sees them.
  void read(const Run& run, std::vector<float>& keys, std::vector<float>& values) const {
    const int rows = static_cast<int>(run.positions.size() - run.centres.size());
    for (std::size_t i = 0; i < run.positions.size(); ++i) {
      const int merged = static_cast<int>(i) - rows;
      const std::ptrdiff_t at =
          std::ptrdiff_t{merged < 0 ? static_cast<int>(i) : run.centres[z(merged)] - kFirstRow} * shape_.dim;
      const std::vector<float> key(run.keys.values.begin() + at, run.keys.values.begin() + at + shape_.dim);
      for (const float x : rotation_.turned(key, run.positions[i]))
        keys.push_back(merged < 0 ? x : x * run.factors[z(merged)]);
      values.insert(values.end(), run.values.values.begin() + at, run.values.values.begin() + at + shape_.dim);
    }
  }

  void expect_head(std::size_t row, int head) const {
    const std::size_t lane = row * z(shape_.kv_heads) + z(head / group());
    std::vector<float> keys;
    std::vector<float> values;
    for (const auto& run : lanes_[lane]) read(*run, keys, values);
    const std::size_t at = (row * z(shape_.heads) + z(head)) * z(shape_.dim);
    const std::vector<float> q(q_.begin() + static_cast<std::ptrdiff_t>(at),
                               q_.begin() + static_cast<std::ptrdiff_t>(at + z(shape_.dim)));
    const auto want = reference::attend(
        rotation_.turned(q, shift_of(static_cast<int>(row))), keys, values,
        {.scale = scale(), .cap = shape_.cap, .sink = shape_.sinks ? sinks_[z(head)] : reference::kNone},
        rounding_of(shape_));
    for (std::size_t c = 0; c < z(shape_.dim); ++c) {
      ASSERT_NEAR(got_[at + c], want.out[c], want.out_error[c] + 1e-7)
          << "row " << row << ", head " << head << ", element " << c;
    }
    if (!shape_.probabilities) return;
    if (!keys.empty()) {
      const double lse = lse_of(want);
      ASSERT_NEAR(lse_.read()[row * z(shape_.heads) + z(head)], lse, lse_error(want, lse))
          << "row " << row << ", head " << head;
    }
    const auto probabilities = probabilities_[lane]->read();
    for (std::size_t j = 0; j < want.weight.size(); ++j) {
      ASSERT_NEAR(probabilities[z(head % group()) * want.weight.size() + j], want.weight[j], want.weight_error[j])
          << "row " << row << ", head " << head << ", entry " << j;
    }
  }

  StepShape shape_;
  std::mt19937 random_{1};
  std::vector<float> q_;
  std::vector<float> sinks_;
  Array<float> device_q_;
  Array<float> device_sinks_;
  Rotation rotation_;
  Array<float> out_;
  Array<float> lse_;
  std::vector<std::vector<std::unique_ptr<Run>>> lanes_;  ///< [row, kv_head]
  std::vector<std::unique_ptr<Array<float>>> probabilities_;
  std::vector<DecodeItem> items_;
  std::vector<std::int32_t> first_item_;
  std::vector<float> got_;
};

}  // namespace winnow::device::test
