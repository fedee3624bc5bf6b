// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "device/device.h"

namespace winnow::attention::device {

/// Whether a device's kernels are used. A kernel may refuse a task, for example on a GPU for which it was not compiled;
/// then none is called again.
class KernelGate {
 public:
  /// `what`: the part of attention that is otherwise computed on the CPU, at the beginning of a sentence.
  KernelGate(const winnow::device::Device& device, const char* what) : device_(device), what_(what) {}

  /// True if the kernels of attention take heads of this size.
  static bool takes_heads(int dim) { return dim % winnow::device::kHeadUnit == 0 && dim <= winnow::device::kMostHead; }

  bool is_open() const { return is_open_; }
  /// Takes a kernel's answer: null, or the reason of its refusal. Returns false if it refused.
  bool accepts(const char* refusal);
  /// Says once why the CPU computes.
  void tell(const std::string& reason);

 private:
  const winnow::device::Device& device_;
  const char* what_;
  bool is_open_ = true;
  bool is_told_ = false;
};

}  // namespace winnow::attention::device
