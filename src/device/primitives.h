// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The device that kernels are written for: an NVIDIA GPU where nvcc compiles them, an emulator everywhere else. Both
/// headers declare the same functions.
#ifdef __CUDACC__
#include "device/cuda/primitives.h"
#else
#include "device/emulated/primitives.h"
#endif
