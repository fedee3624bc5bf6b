// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ggml-cpp.h>
#include <ggml.h>

#include <cstddef>
#include <span>

#include "base/memory.h"
#include "device/device.h"
#include "model/hparams.h"

namespace winnow::network {

/// Hidden states of rows, [rows][n_embd] f32, in the memory in which their executor computes. Only executors read and
/// write them.
class States {
 public:
  /// Bytes of `rows` rows.
  static std::size_t bytes(const model::Hparams& hparams, std::size_t rows);

  /// Allocates the rows, with any values, on a device or, if it is null, in memory that `account` counts. Throws
  /// MemoryError that names `purpose`.
  States(MemoryAccount& account, const model::Hparams& hparams, int rows, const char* purpose,
         device::Device* device = nullptr);

  int rows() const { return rows_; }
  /// Copies a row of these or other states over the row `to`.
  void copy(int to, const States& of, int from);
  /// Copies rows from `first` on to the host's memory, [n][n_embd].
  void read(int first, std::span<float> to) const;

 private:
  friend class Executor;
  /// Address of a row, which only a graph may use if the rows are on a device.
  float* row(int i) const;
  bool is_on_device() const { return device_.buffer() != nullptr; }
  /// Tensor over `count` rows from `first` on.
  ggml_tensor* tensor(ggml_context* context, int first, int count) const;
  /// Copies rows from the host's memory.
  void write(int first, std::span<const float> from);

  Buffer host_;
  device::DeviceMemory device_;
  ggml_backend_buffer_ptr of_host_;  ///< host_ as ggml's buffer
  int width_;
  int rows_;
};

}  // namespace winnow::network
