// SPDX-License-Identifier: Apache-2.0
#include "model/hparams.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "base/printable.h"
#include "model/gguf_file.h"
#include "model/read_layer_specs.h"
#include "winnow/error.h"

namespace winnow::model {

namespace {

constexpr int kMostWidth = 1 << 20;  // far beyond any real network

/// How one architecture differs from the others.
struct Traits {
  std::string_view name;
  Rope::Pairing pairing;
  Activation activation;
  bool qk_norm;
  bool scaled_embedding;
};

constexpr std::array kArchitectures = {
    Traits{"llama", Rope::Pairing::adjacent, Activation::silu, false, false},
    Traits{"qwen2", Rope::Pairing::halves, Activation::silu, false, false},
    Traits{"qwen3", Rope::Pairing::halves, Activation::silu, true, false},
    Traits{"gemma", Rope::Pairing::halves, Activation::gelu, false, true},
};

const Traits& traits_of(const std::string& arch, const std::string& path) {
  for (const auto& traits : kArchitectures) {
    if (traits.name == arch) return traits;
  }
  throw ModelError(fmt::format("{}: architecture '{}' is not supported; supported are {}", path, brief(arch),
                               supported_architectures()));
}

/// Keys that change what a network computes in ways that winnow does not know.
void refuse_unknown_features(const GgufKeys& keys, const std::string& arch) {
  if (keys.integer("split.count").value_or(1) > 1) {
    throw ModelError(fmt::format("{}: split.count is {}: this is one of several files, which is not supported",
                                 keys.path(), *keys.integer("split.count")));
  }
  if (keys.integer(arch + ".expert_count").value_or(0) > 0) {
    throw ModelError(fmt::format("{}: mixtures of experts ({}.expert_count = {}) are not supported", keys.path(), arch,
                                 *keys.integer(arch + ".expert_count")));
  }
  for (const char* key : {".attn_logit_softcapping", ".final_logit_softcapping", ".logit_scale", ".residual_scale",
                          ".embedding_scale", ".attention.scale"}) {
    if (keys.number(arch + key).value_or(0) != 0)
      throw ModelError(fmt::format("{}: {}{} is not supported", keys.path(), arch, key));
  }
}

}  // namespace

void Hparams::add(const LayerSpec& layer) {
  const auto found = std::find(kinds.begin(), kinds.end(), layer);
  kind_of.push_back(static_cast<int>(found - kinds.begin()));
  if (found == kinds.end()) kinds.push_back(layer);
}

std::string supported_architectures() {
  std::string out;
  for (const auto& traits : kArchitectures) out += fmt::format("{}{}", out.empty() ? "" : ", ", traits.name);
  return out;
}

Hparams read_hparams(const gguf_context* gguf, const std::string& path, const ModelOptions& options) {
  const GgufKeys keys(gguf, path);
  Hparams h;
  h.arch = keys.text("general.architecture").value_or("");
  const Traits& traits = traits_of(h.arch, path);
  refuse_unknown_features(keys, h.arch);
  h.name = keys.text("general.name").value_or("");
  // Bounds far beyond any real network, so that products of them cannot overflow.
  h.n_layer = keys.required(h.arch + ".block_count", 1, 4096);
  h.n_embd = keys.required(h.arch + ".embedding_length", 1, kMostWidth);
  if (h.n_embd % 8 != 0)
    throw ModelError(fmt::format("{}: the embedding length is {}, expected a multiple of 8", path, h.n_embd));
  for (const auto& layer : read_layer_specs(keys, {h.arch, h.n_layer, h.n_embd, traits.pairing}, options)) h.add(layer);
  h.ctx_train = keys.required(h.arch + ".context_length", 1, 1 << 30);
  h.rms_eps = static_cast<float>(keys.number(h.arch + ".attention.layer_norm_rms_epsilon", 0, 1).value_or(1e-5));
  h.n_vocab = static_cast<int>(keys.array_length("tokenizer.ggml.tokens").value_or(0));
  if (h.n_vocab < 1) throw ModelError(fmt::format("{}: there is no vocabulary (tokenizer.ggml.tokens)", path));
  h.embedding_scale = traits.scaled_embedding ? std::sqrt(static_cast<float>(h.n_embd)) : 1.0F;
  h.activation = traits.activation;
  h.qk_norm = traits.qk_norm;
  return h;
}

}  // namespace winnow::model
