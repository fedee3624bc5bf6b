// SPDX-License-Identifier: Apache-2.0
#include "network/activation.h"

namespace winnow::network {

ggml_tensor* activated(ggml_context* context, model::Activation activation, ggml_tensor* gate, ggml_tensor* up) {
  using model::Activation;
  switch (activation) {
    case Activation::silu_gate:
      return ggml_swiglu_split(context, gate, up);
    case Activation::gelu_gate:
      return ggml_geglu_split(context, gate, up);
    case Activation::gelu:
      return ggml_gelu_inplace(context, up);
    case Activation::clamped_gate: {
      constexpr float kSteepness = 1.702F;
      constexpr float kMost = 7;
      return ggml_swiglu_oai(context, gate, up, kSteepness, kMost);
    }
  }
  return nullptr;
}

}  // namespace winnow::network
