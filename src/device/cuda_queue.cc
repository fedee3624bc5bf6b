// SPDX-License-Identifier: Apache-2.0
#include "device/cuda_queue.h"

#include <dlfcn.h>

#include "base/log.h"
#include "device/kernel_library.h"

namespace winnow::device {

namespace {

constexpr const char* kLibrary = "libggml-cuda.so";

/// A function of ggml's library, which is loaded; null: it has none of this name.
template <class Function>
Function find(const char* name) {
  void* const handle = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (handle == nullptr) return nullptr;
  const auto out = reinterpret_cast<Function>(dlsym(handle, name));
  dlclose(handle);
  return out;
}

}  // namespace

Queue cuda_queue(ggml_backend_t backend) {
  Queue out{.kernels = load_kernels("cuda")};
  if (out.kernels == nullptr) return out;
  const auto stream_of = find<void* (*)(ggml_backend_t)>("winnow_stream");
  const auto queue_part = find<decltype(out.queue_part)>("winnow_queue_part");
  if (stream_of == nullptr || queue_part == nullptr) {
    log().warn("each layer waits for the host, because {} was not built by this version of tools/get-deps.sh cuda",
               kLibrary);
    return out;
  }
  out.stream = stream_of(backend);
  out.queue_part = queue_part;
  return out;
}

}  // namespace winnow::device
