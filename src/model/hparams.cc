#include "model/hparams.h"

#include <spdlog/fmt/fmt.h>

#include <array>
#include <charconv>
#include <cmath>
#include <string_view>

#include "base/printable.h"
#include "model/gguf_file.h"
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

/// 1 / factor, from the file or from what the user says against it.
float freq_scale(const GgufKeys& keys, const std::string& arch, const LoadOptions& options) {
  if (!options.rope_scaling.empty()) {
    const std::string_view text = options.rope_scaling;
    constexpr std::string_view kLinear = "linear:";
    float factor = 1;
    if (text == "none") return 1;
    if (text.starts_with(kLinear)) {
      const auto digits = text.substr(kLinear.size());
      const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), factor);
      if (error == std::errc() && end == digits.data() + digits.size() && std::isfinite(1 / factor) && factor > 0)
        return 1 / factor;
    }
    throw UsageError(fmt::format("RoPE scaling '{}' is not supported: use none or linear:FACTOR", text));
  }
  const auto type = keys.text(arch + ".rope.scaling.type").value_or("linear");
  constexpr double kLargestFactor = 1e6;
  auto factor = keys.number(arch + ".rope.scaling.factor", 0, kLargestFactor);
  if (!factor) factor = keys.number(arch + ".rope.scale_linear", 0, kLargestFactor);
  if (type == "none") return 1;
  if (type != "linear") {
    throw ModelError(
        fmt::format("{}: RoPE scaling '{}' is not supported (none and linear are; --rope-scaling overrides the file)",
                    keys.path(), brief(type)));
  }
  if (!factor || *factor == 0) return 1;
  if (*factor < 1 / kLargestFactor)
    throw ModelError(fmt::format("{}: {}.rope.scaling.factor is {:g}, expected {:g} to {:g}", keys.path(), arch,
                                 *factor, 1 / kLargestFactor, kLargestFactor));
  return static_cast<float>(1 / *factor);
}

void fill_rope(Hparams& h, const GgufKeys& keys, const Traits& traits, const LoadOptions& options) {
  const int n_rot = keys.integer(h.arch + ".rope.dimension_count", 0, kMostWidth).value_or(h.head_dim);
  if (n_rot < 2 || n_rot > h.head_dim || n_rot % 2 != 0) {
    throw ModelError(fmt::format("{}: {}.rope.dimension_count is {}, expected an even number from 2 to {}", keys.path(),
                                 h.arch, n_rot, h.head_dim));
  }
  if (options.rope_freq_base < 0 || !std::isfinite(options.rope_freq_base)) {
    throw UsageError(fmt::format("the RoPE frequency base is {}: it must be above 0", options.rope_freq_base));
  }
  h.rope_freq_base = options.rope_freq_base > 0
                         ? options.rope_freq_base
                         : static_cast<float>(keys.number(h.arch + ".rope.freq_base", 1e-6, 1e30).value_or(10000));
  h.rope_freq_scale = freq_scale(keys, h.arch, options);
  h.rope.pairing = traits.pairing;
  for (int i = 0; i < n_rot / 2; ++i) {
    const double frequency = h.rope_freq_scale * std::pow(static_cast<double>(h.rope_freq_base), -2.0 * i / n_rot);
    h.rope.frequency.push_back(static_cast<float>(frequency));
  }
}

}  // namespace

std::string supported_architectures() {
  std::string out;
  for (const auto& traits : kArchitectures) out += fmt::format("{}{}", out.empty() ? "" : ", ", traits.name);
  return out;
}

Hparams read_hparams(const gguf_context* gguf, const std::string& path, const LoadOptions& options) {
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
  h.n_ff = keys.required(h.arch + ".feed_forward_length", 1, 1 << 22);
  h.n_head = keys.required(h.arch + ".attention.head_count", 1, 4096);
  h.n_head_kv = keys.integer(h.arch + ".attention.head_count_kv", 1, 4096).value_or(h.n_head);
  if (h.n_head_kv < 1 || h.n_head_kv > h.n_head || h.n_head % h.n_head_kv != 0) {
    throw ModelError(fmt::format("{}: {} query heads cannot share {} KV heads", path, h.n_head, h.n_head_kv));
  }
  h.head_dim = keys.integer(h.arch + ".attention.key_length", 1, kMostWidth).value_or(h.n_embd / h.n_head);
  const auto value_dim = keys.integer(h.arch + ".attention.value_length", 1, kMostWidth).value_or(h.head_dim);
  if (value_dim != h.head_dim) {
    throw ModelError(fmt::format("{}: keys of {} and values of {} dimensions: different lengths are not supported",
                                 path, h.head_dim, value_dim));
  }
  if (h.head_dim < 1 || h.head_dim > 256)
    throw ModelError(fmt::format("{}: the head dimension is {}, supported are 1 to 256", path, h.head_dim));
  h.ctx_train = keys.required(h.arch + ".context_length", 1, 1 << 30);
  h.rms_eps = static_cast<float>(keys.number(h.arch + ".attention.layer_norm_rms_epsilon", 0, 1).value_or(1e-5));
  h.n_vocab = static_cast<int>(keys.array_length("tokenizer.ggml.tokens").value_or(0));
  if (h.n_vocab < 1) throw ModelError(fmt::format("{}: there is no vocabulary (tokenizer.ggml.tokens)", path));
  h.embedding_scale = traits.scaled_embedding ? std::sqrt(static_cast<float>(h.n_embd)) : 1.0F;
  h.attention_scale = 1.0F / std::sqrt(static_cast<float>(h.head_dim));
  h.activation = traits.activation;
  h.qk_norm = traits.qk_norm;
  fill_rope(h, keys, traits, options);
  return h;
}

}  // namespace winnow::model
