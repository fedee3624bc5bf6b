// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/device.h"

namespace winnow::device {

/// Where work for a device of ggml's CUDA backend is queued: winnow's kernels, and graphs in the same stream if ggml's
/// library was built by tools/get-deps.sh, which adds the functions for that.
Queue cuda_queue(ggml_backend_t backend);

}  // namespace winnow::device
