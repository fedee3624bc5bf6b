// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <limits>
#include <memory>

#include "device/device.h"

namespace winnow::test {

/// A device that is ggml's CPU backend over memory of its own. This memory is locked except while the device computes
/// or copies, so a program that reads or writes it dies at once. New memory is NaN. Allocations fail beyond `bytes`,
/// and it does not support the operation `refused`.
std::shared_ptr<device::Device> host_device(std::size_t bytes = std::numeric_limits<std::size_t>::max(),
                                            ggml_op refused = GGML_OP_NONE);

/// The same with winnow's kernels, run by the emulator. Kernels and graphs are queued in order, and run when somebody
/// waits for them; copies do not wait by themselves.
std::shared_ptr<device::Device> host_device_with_kernels(std::size_t bytes = std::numeric_limits<std::size_t>::max());
/// The same with kernels that run `before` tasks and refuse all later ones.
std::shared_ptr<device::Device> host_device_that_refuses(long before = 0);

/// Counts of the work of all host devices so far.
struct Traffic {
  long kernels = 0;
  long copies = 0;  ///< from the host or to it
  std::size_t bytes_to_host = 0;

  Traffic operator-(const Traffic& other) const {
    return {kernels - other.kernels, copies - other.copies, bytes_to_host - other.bytes_to_host};
  }
};
Traffic traffic();

/// The device that the variable WINNOW_TEST_DEVICE names, as in open_device(); by default a host device.
std::shared_ptr<device::Device> tested_device();
/// The same; a host device if that one has no kernels of winnow.
std::shared_ptr<device::Device> tested_device_with_kernels();

}  // namespace winnow::test
