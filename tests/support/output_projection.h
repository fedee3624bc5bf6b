// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ggml-cpp.h>
#include <ggml.h>
#include <gguf.h>

#include <algorithm>
#include <string>
#include <vector>

namespace winnow::test {

/// The output projection of a layer of a GGUF, [n_embd][H_q d], read without winnow.
inline std::vector<double> output_projection(const std::string& path, int layer) {
  ggml_context* data = nullptr;
  const gguf_context_ptr file(gguf_init_from_file(path.c_str(), {false, &data}));
  const ggml_context_ptr tensors(data);
  const ggml_tensor* const w = ggml_get_tensor(data, ("blk." + std::to_string(layer) + ".attn_output.weight").c_str());
  std::vector<float> out(static_cast<std::size_t>(ggml_nelements(w)));
  if (w->type == GGML_TYPE_F32) {
    std::copy_n(static_cast<const float*>(w->data), out.size(), out.begin());
  } else {
    ggml_get_type_traits(w->type)->to_float(w->data, out.data(), ggml_nelements(w));
  }
  return {out.begin(), out.end()};
}

}  // namespace winnow::test
