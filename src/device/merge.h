// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/kernels.h"

namespace winnow::device {

/// Folds the parts of each query into its output, and makes probabilities of the logits of the items that want them.
const char* merge(const DecodeTask& task, void* stream);

}  // namespace winnow::device
