// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ggml-backend.h>
#include <ggml.h>

#include <vector>

namespace winnow::model {

/// The CPU backend's special buffer types (AMX tiles, repacked rows), in order of preference; may be empty.
std::vector<ggml_backend_buffer_type_t> repacking_buffer_types();

/// The first of `types` in which the CPU supports products by `weight`, a matrix [in, out] (MUL_MAT) or experts [in,
/// out, count] (MUL_MAT_ID). Null: only the file's layout.
ggml_backend_buffer_type_t repacking_for(ggml_tensor* weight, ggml_op op,
                                         const std::vector<ggml_backend_buffer_type_t>& types);

}  // namespace winnow::model
