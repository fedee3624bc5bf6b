// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/kernels.h"

namespace winnow::device {

/// Merges the parts of each query into its output, and turns the logits of items with `probabilities` into
/// probabilities.
const char* merge(const DecodeTask& task, void* stream);

}  // namespace winnow::device
