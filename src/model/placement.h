// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ggml-backend.h>
#include <ggml.h>

#include <vector>

namespace winnow::model {

/// The CPU backend's special buffer types (AMX tiles, repacked rows), the preferred first; empty where it has none.
std::vector<ggml_backend_buffer_type_t> repacking_buffer_types();

/// The first of `types` in which the CPU multiplies by `weight`, a matrix [in, out] (op MUL_MAT) or experts [in, out,
/// count] (MUL_MAT_ID). Null: it multiplies by it as the file has it.
ggml_backend_buffer_type_t repacking_for(ggml_tensor* weight, ggml_op op,
                                         const std::vector<ggml_backend_buffer_type_t>& types);

}  // namespace winnow::model
