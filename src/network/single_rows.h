// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "base/memory.h"
#include "model/weights.h"
#include "network/compute_graph.h"
#include "network/linear.h"

namespace winnow::network {

/// Finds the matrices for which ggml's product of several rows is not bit for bit that of each row alone: f32 and bf16
/// if llamafile's kernels take over from two rows on, K quants in plain memory from eight, some repacked types from
/// four. This depends on the machine and on ggml's build, so it is measured with the first outputs of each type.
/// `compute` runs a graph. Throws MemoryError.
WeightSet find_row_by_row(const model::Weights& weights, MemoryAccount& account, Bf16Kernels& kernels,
                          const std::function<void(const ComputeGraph&)>& compute);

}  // namespace winnow::network
