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

/// What all layers of a network have in common.
struct Network {
  const Architecture& architecture;
  int n_layer = 0;  ///< blocks of the file
  int n_embd = 0;
  RopeScaling rope_scaling;
};

/// The number that the key of a soft cap names, or what stands for it; 0: there is none. Throws ModelError.
float soft_cap(const GgufKeys& keys, const std::string& key, const Architecture::Cap& cap);

/// The shapes of each layer, [n_layer]. llama.cpp reads head counts and feed-forward widths as one number for all
/// layers or as an array of one for each; here head sizes and RoPE may be arrays, too. Frequencies are without
/// factors that are tensors. Throws ModelError, UsageError for what the user says of RoPE.
std::vector<LayerSpec> read_layer_specs(const GgufKeys& keys, const Network& network, const ModelOptions& options);

}  // namespace winnow::model
