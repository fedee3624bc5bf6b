// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "base/memory.h"
#include "model/hparams.h"

namespace winnow::network {

/// Hidden states of rows, [rows][n_embd] f32, in the memory in which their executor computes. Only executors read and
/// write them.
class States {
 public:
  /// Bytes of `rows` rows.
  static std::size_t bytes(const model::Hparams& hparams, std::size_t rows);

  /// Allocates the rows, with any values. Throws MemoryError that names `purpose`.
  States(MemoryAccount& account, const model::Hparams& hparams, int rows, const char* purpose);

  int rows() const { return rows_; }
  /// Copies a row of these or other states over the row `to`.
  void copy(int to, const States& of, int from);
  /// Copies rows from `first` on to the host's memory, [n][n_embd].
  void read(int first, std::span<float> to) const { std::copy_n(row(first), to.size(), to.begin()); }

 private:
  friend class Executor;
  /// 32-byte aligned, since n_embd is a multiple of 8: ggml aborts otherwise.
  float* row(int i);
  const float* row(int i) const;

  Buffer memory_;
  int width_;
  int rows_;
};

}  // namespace winnow::network
