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

/// Inputs of a layer's experts, collected from all rows of a pass: each row's input in bf16, its chosen experts and
/// their weights. After all rows have passed, the experts run one after the other, each over all its rows.
class ExpertRows {
 public:
  /// Bytes for `rows` rows.
  static std::size_t bytes(const model::Hparams& hparams, std::size_t rows);

  /// `rows`: all rows of the pass. Throws MemoryError.
  ExpertRows(MemoryAccount& account, const model::Hparams& hparams, int rows);

  /// Sets the index of the first row of the next chunk.
  void begin_chunk(int first) { first_ = first; }
  /// Keeps inputs x [n_embd, rows], `chosen` [k, rows] and `shares` [k, rows]. Returns zeros [n_embd, rows] in place of
  /// the experts' outputs.
  ggml_tensor* keep(ggml_context* context, ggml_tensor* x, ggml_tensor* chosen, ggml_tensor* shares);

  /// Rows that one expert multiplies together.
  struct Group {
    int expert = 0;
    int of_expert = 0;  ///< number of all its rows
    int rows = 0;       ///< 0: no rows are left
  };
  /// The next rows, at most `most`, ordered by expert, then by row. After the last ones a new layer begins.
  Group next(const model::LayerSpec& layer, int most);
  /// Inputs of these rows, [n_embd, rows] f32.
  ggml_tensor* inputs(ggml_context* context);
  /// Adds the results y [n_embd, rows] of these rows to `hidden` [all rows][n_embd], times their share and `scale`.
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
  Buffer places_;  ///< [rows * k] i32: row * k + rank, ordered by expert
  int used_ = 0;   ///< k of the layer
  int first_ = 0;
  std::vector<int> ends_;  ///< end of each expert's places; empty: not sorted yet
  int expert_ = 0;
  int next_ = 0;  ///< index into places_
  std::span<const std::int32_t> group_;
  float* hidden_ = nullptr;
  float scale_ = 1;
};

}  // namespace winnow::network
