// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ggml.h>

#include "model/expert_matrices.h"
#include "network/linear.h"

namespace winnow::network {

/// Products of rows x [inputs, rows] and the experts chosen for each row.
class Chosen {
 public:
  /// `experts` [k, rows] i32: distinct within a row.
  Chosen(ggml_context* context, Products::Experts how, ggml_tensor* experts)
      : context_(context), how_(how), experts_(experts) {}

  /// x [inputs, 1 or k, rows]: shared by all experts of a row, or one for each. Returns [outputs, k, rows].
  ggml_tensor* product(const model::ExpertMatrices& by, ggml_tensor* x);

 private:
  bool gives_each_many_rows(std::int64_t experts) const;
  ggml_tensor* product_row_by_row(ggml_tensor* weight, ggml_tensor* x);
  ggml_tensor* rounded(ggml_tensor* x, ggml_type type);

  ggml_context* context_;
  Products::Experts how_;
  ggml_tensor* experts_;
  ggml_tensor* x_ = nullptr;
  ggml_tensor* rounded_ = nullptr;  ///< x_ rounded; gate and up have the same input
};

}  // namespace winnow::network
