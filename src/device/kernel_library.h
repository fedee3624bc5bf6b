// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "device/kernels.h"

namespace winnow::device {

/// winnow's kernels for a ggml backend's devices, from a library such as libwinnow_cuda.so, which is loaded from where
/// ggml's backends are. Null if there is none; the verbose log says why.
const Kernels* load_kernels(std::string_view backend);

}  // namespace winnow::device
