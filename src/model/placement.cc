// SPDX-License-Identifier: Apache-2.0
#include "model/placement.h"

#include <ggml-cpp.h>

namespace winnow::model {

namespace {

ggml_backend_dev_t cpu_device() { return ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU); }

ggml_tensor* product_by(ggml_context* context, ggml_tensor* weight, ggml_op op) {
  constexpr int kRows = 512;  // a chunk of a prompt; the layout serves long and short products
  if (op == GGML_OP_MUL_MAT)
    return ggml_mul_mat(context, weight, ggml_new_tensor_2d(context, GGML_TYPE_F32, weight->ne[0], kRows));
  return ggml_mul_mat_id(context, weight, ggml_new_tensor_3d(context, GGML_TYPE_F32, weight->ne[0], 1, kRows),
                         ggml_new_tensor_2d(context, GGML_TYPE_I32, 1, kRows));
}

bool multiplies(ggml_tensor* weight, ggml_op op, ggml_backend_buffer_type_t type) {
  const ggml_init_params params{3 * ggml_tensor_overhead(), nullptr, true};
  const ggml_context_ptr context(ggml_init(params));
  ggml_tensor* const product = product_by(context.get(), weight, op);
  // The backend decides by the type of the weight's buffer, so an empty one suffices.
  const ggml_backend_buffer_ptr empty(ggml_backend_buft_alloc_buffer(type, 0));
  weight->buffer = empty.get();
  const bool supported = ggml_backend_dev_supports_op(cpu_device(), product);
  weight->buffer = nullptr;
  return supported;
}

}  // namespace

std::vector<ggml_backend_buffer_type_t> repacking_buffer_types() {
  std::vector<ggml_backend_buffer_type_t> out;
  const auto get = reinterpret_cast<ggml_backend_dev_get_extra_bufts_t>(ggml_backend_reg_get_proc_address(
      ggml_backend_dev_backend_reg(cpu_device()), "ggml_backend_dev_get_extra_bufts"));
  if (get == nullptr) return out;
  for (auto* type = get(cpu_device()); type != nullptr && *type != nullptr; ++type) out.push_back(*type);
  return out;
}

ggml_backend_buffer_type_t repacking_for(ggml_tensor* weight, ggml_op op,
                                         const std::vector<ggml_backend_buffer_type_t>& types) {
  for (auto* type : types) {
    if (multiplies(weight, op, type)) return type;
  }
  return nullptr;
}

}  // namespace winnow::model
