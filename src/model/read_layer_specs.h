// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "model/architecture.h"
#include "model/gguf_file.h"
#include "model/layer_spec.h"
#include "model/rope_scaling.h"
#include "winnow/model_options.h"

namespace winnow::model {

inline constexpr int kMostWidth = 1 << 20;  ///< far beyond any real network

/// Properties shared by all layers of a network.
struct Network {
  const Architecture& architecture;
  int n_layer = 0;  ///< blocks of the file
  int n_embd = 0;
  RopeScaling rope_scaling;
};

/// Value of a soft cap's key, or its default; 0: none. Throws ModelError.
float soft_cap(const GgufKeys& keys, const std::string& key, const Architecture::Cap& cap);

/// Shapes of each layer, [n_layer]. In llama.cpp, head counts and feed-forward widths are numbers or arrays with one
/// value per layer; here head sizes and RoPE may be arrays, too. Frequencies do not include factors stored as tensors.
/// Throws ModelError, and UsageError for the user's RoPE options.
std::vector<LayerSpec> read_layer_specs(const GgufKeys& keys, const Network& network, const ModelOptions& options);

}  // namespace winnow::model
