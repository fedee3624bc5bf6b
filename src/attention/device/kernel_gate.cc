// SPDX-License-Identifier: Apache-2.0
#include "attention/device/kernel_gate.h"

#include "base/log.h"

namespace winnow::attention::device {

bool KernelGate::accepts(const char* refusal) {
  if (refusal == nullptr) return true;
  is_open_ = false;
  tell(device_.name() + ": " + refusal);
  return false;
}

void KernelGate::tell(const std::string& reason) {
  if (!is_told_) log().warn("{} is computed on the CPU: {}", what_, reason);
  is_told_ = true;
}

}  // namespace winnow::attention::device
