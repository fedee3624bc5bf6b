// SPDX-License-Identifier: Apache-2.0
#include "device/kernel_library.h"

#include <dlfcn.h>
#include <spdlog/fmt/fmt.h>

#include "base/log.h"

namespace winnow::device {

const Kernels* load_kernels(std::string_view backend) {
  const auto library = fmt::format("libwinnow_{}.so", backend);
  void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);  // stays loaded, like ggml's backends
  if (handle == nullptr) {
    log().warn("attention is computed on the CPU: {}", dlerror());
    return nullptr;
  }
  const auto of = reinterpret_cast<decltype(&winnow_kernels)>(dlsym(handle, "winnow_kernels"));
  const Kernels* const kernels = of == nullptr ? nullptr : of();
  if (kernels != nullptr && kernels->version == kKernelVersion) return kernels;
  log().warn("attention is computed on the CPU: {} has kernels of version {}, not {}", library,
             kernels == nullptr ? 0 : kernels->version, kKernelVersion);
  return nullptr;
}

}  // namespace winnow::device
