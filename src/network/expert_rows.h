// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ggml.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/memory.h"
#include "model/hparams.h"

namespace winnow::network {

/// What the rows of a pass leave for the experts of a layer: each row's input in bf16, the experts it has chosen and
/// their weights. When all rows have passed, the experts follow each other, each with all its rows.
class ExpertRows {
 public:
  /// Bytes for so many rows.
  static std::size_t bytes(const model::Hparams& hparams, std::size_t rows);

  /// Throws MemoryError. `rows` of the pass.
  ExpertRows(MemoryAccount& account, const model::Hparams& hparams, int rows);

  /// The rows that pass next begin with this one.
  void begin_chunk(int first) { first_ = first; }
  /// Keeps inputs x [n_embd, rows], `chosen` [k, rows] and `shares` [k, rows]; gives [n_embd, rows] zeros, what the
  /// experts add until they come.
  ggml_tensor* keep(ggml_context* context, ggml_tensor* x, ggml_tensor* chosen, ggml_tensor* shares);

  /// Rows that one expert multiplies together.
  struct Group {
    int expert = 0;
    int of_expert = 0;  ///< rows that it has in all
    int rows = 0;       ///< 0: no expert has rows left
  };
  /// The next rows, at most so many, in the order of experts and then of rows. A new layer begins after the last.
  Group next(const model::LayerSpec& layer, int most);
  /// Their inputs, [n_embd, rows] f32.
  ggml_tensor* inputs(ggml_context* context);
  /// Adds their results y [n_embd, rows] to `hidden` [all rows][n_embd], each times its share and `scale`.
  ggml_tensor* add(ggml_context* context, ggml_tensor* y, float* hidden, float scale);

 private:
  void sort(const model::LayerSpec& layer);
  static void keep_rows(ggml_tensor* out, int index, int count, void* self);
  static void widen_rows(ggml_tensor* out, int index, int count, void* self);
  static void add_rows(ggml_tensor* out, int index, int count, void* self);

  int rows_;
  int n_embd_;
  Buffer inputs_;  ///< [rows][n_embd] bf16
  Buffer chosen_;  ///< [rows][k] i32
  Buffer shares_;  ///< [rows][k] f32
  Buffer places_;  ///< [rows * k] i32: row * k + rank, by expert
  int used_ = 0;   ///< k of the layer
  int first_ = 0;
  std::vector<int> ends_;  ///< of each expert's places; empty: they are not sorted
  int expert_ = 0;
  int next_ = 0;  ///< place
  std::span<const std::int32_t> group_;
  float* hidden_ = nullptr;
  float scale_ = 1;
};

}  // namespace winnow::network
