// SPDX-License-Identifier: Apache-2.0
#include "device/kernels.h"

#include "device/kernels/calls.h"

extern "C" __attribute__((visibility("default"))) const winnow::device::Kernels* winnow_kernels() {
  static const winnow::device::Kernels kernels{winnow::device::kKernelVersion, winnow::device::prefill,
                                               winnow::device::observe,        winnow::device::decode,
                                               winnow::device::store,          winnow::device::products};
  return &kernels;
}
