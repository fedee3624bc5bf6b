// SPDX-License-Identifier: Apache-2.0
#include "support/tiny_architectures.h"

#include <algorithm>

namespace winnow::test {

namespace {

constexpr std::string_view kNone;
constexpr std::string_view kPostAttention = "post_attention_norm";
constexpr std::string_view kPostFfn = "post_ffw_norm";
constexpr Biases kOfEverything = {.qkv = true, .attn_output = true, .ffn = true, .output = true};
constexpr Biases kOfEveryBlock = {.qkv = true, .attn_output = true, .ffn = true};
constexpr Biases kOfQkv = {.qkv = true};
constexpr Biases kNoOthers = {};

// The values are about as far from 1 as those of real models, so that ignoring one of the keys changes the logits
// clearly.
std::vector<TinyKey> granite_scales() {
  return {
      {".embedding_scale", 12.0F}, {".residual_scale", 0.25F}, {".attention.scale", 0.0625F}, {".logit_scale", 8.0F}};
}

std::vector<TinyKey> granite_with_windows() {
  auto keys = granite_scales();
  keys.push_back({".attention.sliding_window", 8U});
  keys.push_back({".attention.sliding_window_pattern", std::vector{true, false, true, false}});
  keys.push_back({".attention.rope_pattern", std::vector{true, true, false, false}});
  return keys;
}

std::vector<TinyArchitecture> all() {
  return {
      {.name = "llama", .optional_biases = kOfEveryBlock},
      {.name = "qwen2", .biases = kOfQkv, .optional_biases = {.output = true}, .heads_fill_width = true},
      {.name = "qwen3", .qk_norm = QkNorm::of_heads},
      {.name = "qwen2moe",
       .experts = 8,
       .expert_width = true,
       .shared = SharedExpert::gated,
       .biases = kOfQkv,
       .optional_biases = kNoOthers,
       .output = OutputMatrix::untied,
       .heads_fill_width = true},
      {.name = "qwen3moe", .qk_norm = QkNorm::of_heads, .experts = 8, .expert_width = true},
      {.name = "olmoe",
       .qk_norm = QkNorm::of_rows,
       .experts = 8,
       .output = OutputMatrix::untied,
       .heads_fill_width = true,
       .own_kv_heads = true},
      {.name = "gemma", .output = OutputMatrix::tied, .gelu = true},
      {.name = "phi3", .fused_qkv = true, .ffn = FfnKind::fused, .heads_fill_width = true},
      {.name = "smollm3", .layers = 5},  // no RoPE in the fourth
      {.name = "olmo2",
       .pre_attention = kNone,
       .post_attention = kPostAttention,
       .pre_ffn = kNone,
       .post_ffn = kPostFfn,
       .qk_norm = QkNorm::of_rows,
       .output = OutputMatrix::untied,
       .heads_fill_width = true},
      {.name = "granite", .shared = SharedExpert::plain, .optional_biases = kOfEveryBlock, .keys = granite_scales()},
      {.name = "granitemoe",
       .experts = 8,
       .shared = SharedExpert::plain,
       .optional_biases = {.qkv = true, .attn_output = true},
       .keys = granite_scales()},
      {.name = "glm4",
       .post_attention = kPostAttention,
       .post_ffn = kPostFfn,
       .ffn = FfnKind::fused,
       .biases = kOfQkv,
       .optional_biases = kNoOthers,
       .half_rotated = true},
      {.name = "glm4moe",
       .pre_ffn = kPostAttention,
       .qk_norm = QkNorm::of_heads,
       .qk_norm_optional = true,
       .experts = 8,
       .expert_width = true,
       .choice_bias = true,
       .leading_dense = 1,
       .shared = SharedExpert::counted,
       .biases = kOfQkv,
       .optional_biases = kNoOthers,
       .half_rotated = true,
       .layers = 3,
       .keys = {{".expert_weights_norm", true}, {".expert_weights_scale", 2.5F}}},
      {.name = "gpt-oss",
       .pre_ffn = kPostAttention,
       .experts = 8,
       .expert_width = true,
       .expert_biases = true,
       .biases = {.qkv = true, .attn_output = true},
       .optional_biases = kNoOthers,
       .output = OutputMatrix::untied,
       .sinks = true,
       .layers = 4,  // the second and the fourth have no window
       .keys = {{".attention.sliding_window", 8U}}},
      {.name = "minimax-m2",
       .qk_norm = QkNorm::of_rows,
       .experts = 8,
       .choice_bias = true,
       .output = OutputMatrix::untied,
       .half_rotated = true,
       .keys = {{".expert_gating_func", 2U}},
       .unused_keys = {{".expert_feed_forward_length", 128U}}},
      {.name = "command-r",
       .norm = NormKind::layer,
       .pre_ffn = kNone,
       .qk_norm = QkNorm::of_each_head,
       .qk_norm_from_layers = 64,
       .output = OutputMatrix::tied,
       .heads_fill_width = true,
       .keys = {{".logit_scale", 0.0625F}}},
      {.name = "gemma3",
       .post_attention = kPostAttention,
       .post_ffn = kPostFfn,
       .qk_norm = QkNorm::of_heads,
       .layers = 7,  // the sixth has no window
       .gelu = true,
       .keys = {{".attention.sliding_window", 8U}}},
      {.name = "cohere2",
       .norm = NormKind::layer,
       .pre_ffn = kNone,
       .output = OutputMatrix::tied,
       .heads_fill_width = true,
       .layers = 5,  // the fourth has no window and no RoPE
       .keys = {{".logit_scale", 0.0625F}, {".attention.sliding_window", 8U}}},
      {.name = "gemma2",
       .post_attention = kPostAttention,
       .post_ffn = kPostFfn,
       .output = OutputMatrix::tied,
       .layers = 4,  // the second and the fourth have no window
       .gelu = true,
       .keys = {{".attention.sliding_window", 8U},
                {".attn_logit_softcapping", 3.0F},
                {".final_logit_softcapping", 2.0F}}},
      {.name = "gemma4",
       .post_attention = kPostAttention,
       .post_ffn = kPostFfn,
       .qk_norm = QkNorm::of_heads,
       .expert_width = true,
       .scaled_experts = true,
       .shared = SharedExpert::feed_forward,
       .optional_biases = kNoOthers,
       .own_window_heads = true,
       .rope_of_globals = true,
       .keys_as_values = true,
       .layer_embeddings = true,
       .layer_scales = true,
       .unscaled_attention = true,
       .layers = 6,
       .gelu = true,
       .keys = {{".attention.sliding_window", 8U},
                {".attention.sliding_window_pattern", std::vector{true, true, false, true, true, false}},
                {".final_logit_softcapping", 2.0F}}},
      {.name = "granite_swa",
       .shared = SharedExpert::plain,
       .fused_shared = true,
       .optional_biases = kOfEveryBlock,
       .sinks = true,
       .layers = 4,  // with and without a window, with and without RoPE
       .keys = granite_with_windows()},
      {.name = "mistral3",
       .optional_biases = kOfEveryBlock,
       .warmest = 3,  // after 220 tokens
       .keys = {{".attention.temperature_scale", 0.6F}, {".rope.scaling.original_context_length", 8U}}},
      {.name = "internlm2", .output = OutputMatrix::untied, .heads_fill_width = true},
      {.name = "starcoder2",
       .norm = NormKind::layer_with_bias,
       .ffn = FfnKind::plain,
       .biases = kOfEveryBlock,
       .optional_biases = kNoOthers,
       .heads_fill_width = true,
       .gelu = true},
      {.name = "seed_oss", .pre_ffn = kPostAttention, .biases = kOfQkv, .optional_biases = kNoOthers},
      {.name = "ernie4_5"},
      {.name = "exaone4",
       .pre_attention = kNone,
       .post_attention = kPostAttention,
       .pre_ffn = kNone,
       .post_ffn = kPostFfn,
       .qk_norm = QkNorm::of_heads,
       .heads_fill_width = true},
      {.name = "phi2",
       .norm = NormKind::layer_with_bias,
       .pre_ffn = kNone,
       .fused_qkv = true,
       .ffn = FfnKind::plain,
       .biases = kOfEverything,
       .optional_biases = kNoOthers,
       .output = OutputMatrix::untied,
       .heads_fill_width = true,
       .half_rotated = true,
       .gelu = true},
      {.name = "hunyuan-dense", .qk_norm = QkNorm::of_heads, .keys = {{".rope.scaling.alpha", 1000.0F}}},
      {.name = "minicpm",
       .optional_biases = kOfEveryBlock,
       .keys = {{".embedding_scale", 12.0F}, {".residual_scale", 0.25F}, {".logit_scale", 8.0F}}},
  };
}

}  // namespace

const std::vector<TinyArchitecture>& tiny_architectures() {
  static const auto table = all();
  return table;
}

const TinyArchitecture& tiny_architecture(std::string_view name) {
  const auto& table = tiny_architectures();
  const auto found = std::find_if(table.begin(), table.end(), [&](const auto& row) { return row.name == name; });
  return found == table.end() ? table.front() : *found;
}

}  // namespace winnow::test
