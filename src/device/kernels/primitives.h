// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The device for which kernels are compiled: an NVIDIA GPU under nvcc, otherwise an emulator. Both headers declare the
/// same functions.
#ifdef __CUDACC__
#include "device/cuda/primitives.h"
#else
#include "device/emulated/primitives.h"
#endif
