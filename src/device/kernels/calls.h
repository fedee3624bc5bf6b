// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/kernels.h"

namespace winnow::device {

/// Entries of Kernels.
const char* prefill(const PrefillTask& task, void* stream);
const char* observe(const ObserveTask& task, void* stream);
const char* decode(const DecodeTask& task, void* stream);
const char* store(const StoreTask& task, void* stream);
const char* products(const ProductsTask& task, void* stream);

}  // namespace winnow::device
