// SPDX-License-Identifier: Apache-2.0
#include "model/hparams.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <tuple>

#include "base/printable.h"
#include "model/gguf_file.h"
#include "model/read_layer_specs.h"
#include "winnow/error.h"

namespace winnow::model {

namespace {

constexpr int kMostLayers = 4096;

/// Keys that do not affect the network, or that llama.cpp, and so the makers of files, ignore for all these
/// architectures.
constexpr std::string_view kWithoutMeaning[] = {
    ".vocab_size",
    ".tensor_data_layout",
    ".pooling_type",  // read_pooling()
    ".use_parallel_residual",
    ".rope.scaling.finetuned",
    ".rope.scaling.yarn_beta_fast",
    ".rope.scaling.yarn_beta_slow",
    ".rope.scaling.yarn_ext_factor",
    ".rope.scaling.yarn_attn_factor",
    ".rope.scaling.yarn_log_multiplier",
};

/// Throws ModelError for keys that may change what the network computes in ways that winnow does not support.
void refuse_unknown_keys(const GgufKeys& keys, const Architecture& architecture) {
  const std::string arch(architecture.name);
  if (!keys.flag(arch + ".attention.causal").value_or(true))
    throw ModelError(
        fmt::format("{}: {}.attention.causal is false: only causal attention is supported", keys.path(), arch));
  for (const auto& key : keys.unasked(arch + ".")) {
    const std::string_view rest = std::string_view(key).substr(arch.size());
    if (std::find(std::begin(kWithoutMeaning), std::end(kWithoutMeaning), rest) != std::end(kWithoutMeaning)) continue;
    if (architecture.ignored_window && rest.starts_with(".attention.sliding_window")) continue;
    throw ModelError(fmt::format("{}: key {} is not supported for the architecture {}", keys.path(), brief(key), arch));
  }
}

/// Number of layers with keys and values.
int kv_layers(const GgufKeys& keys, const Architecture& architecture, int layers) {
  if (!architecture.shared_keys) return layers;
  constexpr int kOwners = 2;  // layers whose keys others share
  const int most = std::max(0, layers - kOwners);
  return layers - keys.integer(std::string(architecture.name) + ".attention.shared_kv_layers", 0, most).value_or(0);
}

/// Checks that KV-sharing layers have the shapes of the layers whose keys they read.
void check_shared_keys(const Hparams& h, const std::string& path) {
  for (int l = h.n_kv_layer; l < h.n_layer; ++l) {
    const auto& reader = h.layer(l);
    const auto& owner = h.layer(h.kv_layer(l));
    const auto shape = [](const LayerSpec& s) { return std::tie(s.n_head, s.n_head_kv, s.head_dim, s.window, s.rope); };
    if (shape(reader) == shape(owner)) continue;
    throw ModelError(
        fmt::format("{}: layer {} ({} query heads, {} KV heads of {} dimensions, window {}) reads the keys of layer "
                    "{}, which has other sizes ({}, {} of {}, {})",
                    path, l, reader.n_head, reader.n_head_kv, reader.head_dim, reader.window, h.kv_layer(l),
                    owner.n_head, owner.n_head_kv, owner.head_dim, owner.window));
  }
}

/// 0: no per-layer embeddings.
int layer_embedding_length(const GgufKeys& keys, const Architecture& architecture) {
  if (!architecture.layer_embeddings) return 0;
  const std::string key = std::string(architecture.name) + ".embedding_length_per_layer_input";
  const int length = keys.required(key, 0, kMostWidth);
  if (length % 8 != 0)
    throw ModelError(fmt::format("{}: key {} is {}, expected a multiple of 8", keys.path(), key, length));
  return length;
}

float norm_eps(const GgufKeys& keys, const Architecture& architecture) {
  const char* const name = architecture.norm == Norm::rms ? "layer_norm_rms_epsilon" : "layer_norm_epsilon";
  return static_cast<float>(keys.number(fmt::format("{}.attention.{}", architecture.name, name), 0, 1).value_or(1e-5));
}

/// A scale that is off if absent or 0.
float scale(const GgufKeys& keys, const std::string& key) {
  constexpr double kMostScale = 1e6;
  const double value = keys.number(key, -kMostScale, kMostScale).value_or(0);
  return value == 0 ? 1.0F : static_cast<float>(value);
}

float required_scale(const GgufKeys& keys, const std::string& key) {
  if (!keys.number(key)) throw ModelError(fmt::format("{}: key {} is missing", keys.path(), key));
  return scale(keys, key);
}

void read_scales(const GgufKeys& keys, Hparams& h) {
  const Architecture& a = *h.architecture;
  const std::string arch(a.name);
  h.final_cap = soft_cap(keys, arch + ".final_logit_softcapping", a.final_cap);
  if (a.sqrt_embedding) h.embedding_scale = std::sqrt(static_cast<float>(h.n_embd));
  if (a.scales != Architecture::Scales::none) {
    const auto read = a.scales == Architecture::Scales::required ? required_scale : scale;
    h.embedding_scale = read(keys, arch + ".embedding_scale");
    h.residual_scale = read(keys, arch + ".residual_scale");
  }
  if (a.logit_scale == Architecture::LogitScale::factor) h.logit_scale = scale(keys, arch + ".logit_scale");
  if (a.logit_scale == Architecture::LogitScale::divisor)
    h.logit_scale = 1 / required_scale(keys, arch + ".logit_scale");
}

Routing read_routing(const GgufKeys& keys, const Architecture& architecture) {
  const Experts& experts = architecture.experts;
  const std::string prefix = std::string(architecture.name) + ".expert_";
  Routing out{experts.gating, experts.normed};
  constexpr int kSoftmax = 1;
  constexpr int kSigmoid = 2;
  if (experts.gating_key) {
    const int said = keys.integer(prefix + "gating_func", 0, kSigmoid).value_or(0);
    if (said != 0) out.gating = said == kSoftmax ? Gating::softmax : Gating::sigmoid;
  }
  if (experts.weight_keys) {
    out.normed = keys.flag(prefix + "weights_norm").value_or(false);
    out.scale = scale(keys, prefix + "weights_scale");
  }
  return out;
}

}  // namespace

int Hparams::last_reader(int l) const {
  int last = l;
  for (int other = n_kv_layer; other < n_layer; ++other) {
    if (kv_layer(other) == l) last = other;
  }
  return last;
}

void Hparams::add(const LayerSpec& layer) {
  const int number = static_cast<int>(kind_of.size());
  const auto found = std::find(kinds.begin(), kinds.end(), layer);
  kind_of.push_back(static_cast<int>(found - kinds.begin()));
  if (found == kinds.end()) kinds.push_back(layer);
  if (number >= n_kv_layer) {
    place_of.push_back(place_of[as_size(kv_layer(number))]);
  } else {
    place_of.push_back(layer.window == 0 ? n_global++ : number - n_global);
  }
}

Hparams read_hparams(const gguf_context* gguf, const std::string& path, const ModelOptions& options) {
  const GgufKeys keys(gguf, path);
  Hparams h;
  const std::string arch = keys.text("general.architecture").value_or("");
  h.architecture = &architecture_of(arch, path);
  h.name = keys.text("general.name").value_or("");
  // Bounds far beyond any real network, so that products cannot overflow.
  h.n_block = keys.required(arch + ".block_count", 1, kMostLayers);
  h.n_layer = h.n_block - keys.integer(arch + ".nextn_predict_layers", 0, h.n_block - 1).value_or(0);
  h.n_embd = keys.required(arch + ".embedding_length", 1, kMostWidth);
  if (h.n_embd % 8 != 0)
    throw ModelError(fmt::format("{}: the embedding length is {}, expected a multiple of 8", path, h.n_embd));
  h.n_embd_layer = layer_embedding_length(keys, *h.architecture);
  h.ctx_train = keys.required(arch + ".context_length", 1, kLongestContext);
  h.rope_scaling = read_rope_scaling(keys, *h.architecture, h.ctx_train, options);
  const auto specs = read_layer_specs(keys, {*h.architecture, h.n_block, h.n_embd, h.rope_scaling}, options);
  h.n_kv_layer = kv_layers(keys, *h.architecture, h.n_layer);
  for (int layer = 0; layer < h.n_layer; ++layer) h.add(specs[as_size(layer)]);
  check_shared_keys(h, path);
  h.context = static_cast<int>(std::min(h.rope_scaling.context(h.ctx_train), double{kLongestContext}));
  h.norm_eps = norm_eps(keys, *h.architecture);
  read_scales(keys, h);
  h.routing = read_routing(keys, *h.architecture);
  h.n_vocab = static_cast<int>(keys.array_length("tokenizer.ggml.tokens").value_or(0));
  if (h.n_vocab < 1) throw ModelError(fmt::format("{}: there is no vocabulary (tokenizer.ggml.tokens)", path));
  refuse_unknown_keys(keys, *h.architecture);
  return h;
}

}  // namespace winnow::model
