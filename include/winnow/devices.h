// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "winnow/export.h"

namespace winnow {

namespace device {
class Device;
}  // namespace device

/// A GPU that a ggml backend has found.
struct DeviceInfo {
  std::string name;         ///< the backend's name and a number: `CUDA0`, `Vulkan1`
  std::string description;  ///< of its maker: `NVIDIA H200`
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
};

/// GPUs of all ggml backends that are linked, or that can be loaded: cuda, hip, musa, sycl, vulkan.
WINNOW_EXPORT std::vector<DeviceInfo> devices();

/// Opens the device that `name` says, in letters of either case:
///   cpu           the CPU: null
///   auto          the first GPU of any backend, or the CPU if there is none
///   vulkan, …     the first GPU of a ggml backend
///   vulkan1, …    a GPU by its name
/// A backend's library, such as libggml-vulkan.so, is loaded when its name is first used: from the folder of ggml's
/// other libraries, or where the loader looks. Throws UsageError, which says what is missing.
WINNOW_EXPORT std::shared_ptr<device::Device> open_device(std::string_view name);

}  // namespace winnow
