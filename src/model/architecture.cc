// SPDX-License-Identifier: Apache-2.0
#include "model/architecture.h"

#include <spdlog/fmt/fmt.h>

#include <utility>

#include "base/printable.h"
#include "winnow/error.h"

namespace winnow::model {

namespace {

using A = Architecture;
constexpr auto kHalves = Rope::Pairing::halves;
constexpr auto kWhereCounted = Experts::Presence::where_counted;
constexpr auto kAlways = Experts::Presence::always;

// clang-format off
constexpr Architecture kArchitectures[] = {
    {.name = "llama", .experts = {.presence = kWhereCounted}, .biases = true, .rope_factors = A::RopeFactors::any,
     .ignored_window = true},
    {.name = "qwen2", .pairing = kHalves, .output_bias = true},
    {.name = "qwen3", .pairing = kHalves, .qk_norm = QkNorm::head},
    {.name = "gemma", .pairing = kHalves, .activation = Activation::gelu_gate, .output = A::Output::tied,
     .sqrt_embedding = true},
    {.name = "qwen2moe", .pairing = kHalves,
     .experts = {.presence = kAlways, .width = Experts::Width::own, .normed = false, .shared = Experts::Shared::gated},
     .output = A::Output::untied},
    {.name = "qwen3moe", .pairing = kHalves, .qk_norm = QkNorm::head,
     .experts = {.presence = kAlways, .width = Experts::Width::own}},
    {.name = "gemma3", .pairing = kHalves, .attention_post_norm = "post_attention_norm",
     .ffn_post_norm = "post_ffw_norm", .qk_norm = QkNorm::head, .activation = Activation::gelu_gate,
     .sqrt_embedding = true, .windows = {.every = 6, .rotation = A::Windows::Rotation::own_base},
     .final_cap = {.possible = true}, .width_scale_layers = 62},
    {.name = "gemma4", .pairing = kHalves, .attention_post_norm = "post_attention_norm",
     .ffn_post_norm = "post_ffw_norm", .qk_norm = QkNorm::head, .activation = Activation::gelu_gate,
     .experts = {.presence = kWhereCounted, .width = Experts::Width::own, .router_norm = true, .scales = true,
                 .shared = Experts::Shared::feed_forward},
     .rope_factors = A::RopeFactors::of_globals, .sqrt_embedding = true, .unscaled_attention = true,
     .value_norm = true, .keys_as_values = true, .shared_keys = true, .layer_embeddings = true, .layer_scales = true,
     .windows = {.listed = true, .required = true, .own_heads = true, .rotation = A::Windows::Rotation::own_base},
     .final_cap = {true, 30}},
    {.name = "gemma2", .pairing = kHalves, .attention_post_norm = "post_attention_norm",
     .ffn_post_norm = "post_ffw_norm", .activation = Activation::gelu_gate, .output = A::Output::tied,
     .sqrt_embedding = true,
     .windows = {.every = 2, .otherwise = 4096, .rotation = A::Windows::Rotation::scaled},
     .attention_cap = {true, 50}, .final_cap = {true, 30}, .width_scale_layers = 46},
    {.name = "phi3", .pairing = kHalves, .fused_up = true, .rope_factors = A::RopeFactors::long_and_short,
     .ignored_window = true},
    {.name = "phi2", .pairing = kHalves, .norm = Norm::mean, .ffn_norm = "",
     .feed_forward = A::FeedForward::beside_attention, .activation = Activation::gelu, .biases = true,
     .output_bias = true, .output = A::Output::untied},
    {.name = "smollm3", .unrotated_every = 4},
    {.name = "olmo2", .pairing = kHalves, .attention_norm = "", .attention_post_norm = "post_attention_norm",
     .ffn_norm = "", .ffn_post_norm = "post_ffw_norm", .qk_norm = QkNorm::row, .output = A::Output::untied,
     .windows = {.every = 4, .rotation = A::Windows::Rotation::unscaled}},
    {.name = "olmoe", .pairing = kHalves, .qk_norm = QkNorm::row, .experts = {.presence = kAlways, .normed = false},
     .output = A::Output::untied},
    {.name = "granite", .experts = {.presence = kWhereCounted, .shared = Experts::Shared::plain}, .biases = true,
     .rope_factors = A::RopeFactors::any, .finetuned_rope = true, .scales = A::Scales::optional,
     .attention_scale = true, .logit_scale = A::LogitScale::divisor},
    {.name = "granitemoe", .experts = {.presence = kWhereCounted, .shared = Experts::Shared::plain}, .biases = true,
     .rope_factors = A::RopeFactors::any, .scales = A::Scales::optional, .attention_scale = true,
     .logit_scale = A::LogitScale::divisor},
    {.name = "granite_swa",
     .experts = {.presence = kWhereCounted, .shared = Experts::Shared::plain, .fused_shared = true}, .biases = true,
     .rope_factors = A::RopeFactors::any, .listed_rope = true, .scales = A::Scales::optional, .attention_scale = true,
     .logit_scale = A::LogitScale::divisor, .windows = {.listed = true, .required = true}, .sinks = true},
    {.name = "exaone4", .pairing = kHalves, .attention_norm = "", .attention_post_norm = "post_attention_norm",
     .ffn_norm = "", .ffn_post_norm = "post_ffw_norm", .qk_norm = QkNorm::head, .rope_factors = A::RopeFactors::one,
     .windows = {.every = 4, .only_layers = 64, .rotation = A::Windows::Rotation::windows_only}},
    {.name = "glm4", .attention_post_norm = "post_attention_norm", .ffn_post_norm = "post_ffw_norm", .fused_up = true},
    {.name = "glm4moe", .pairing = kHalves, .ffn_norm = "post_attention_norm", .qk_norm = QkNorm::head,
     .qk_norm_optional = true,
     .experts = {.presence = kAlways, .width = Experts::Width::own, .gating = Gating::sigmoid, .gating_key = true,
                 .weight_keys = true, .choice_bias = true, .leading_dense = true,
                 .shared = Experts::Shared::counted}},
    {.name = "gpt-oss", .pairing = kHalves, .ffn_norm = "post_attention_norm",
     .activation = Activation::clamped_gate,
     .experts = {.presence = kAlways, .width = Experts::Width::own, .biases = true}, .biases = true,
     .output = A::Output::untied,
     .windows = {.every = 2, .required = true, .rotation = A::Windows::Rotation::scaled}, .sinks = true},
    {.name = "minimax-m2", .pairing = kHalves, .qk_norm = QkNorm::row,
     .experts = {.presence = kAlways, .width = Experts::Width::own, .gating = Gating::sigmoid, .gating_key = true,
                 .choice_bias = true},
     .output = A::Output::untied},
    {.name = "internlm2", .output = A::Output::untied},
    {.name = "starcoder2", .pairing = kHalves, .norm = Norm::mean, .activation = Activation::gelu, .biases = true},
    {.name = "command-r", .norm = Norm::mean, .ffn_norm = "", .qk_norm = QkNorm::head_by_mean, .qk_norm_from = 64,
     .feed_forward = A::FeedForward::beside_attention, .output = A::Output::tied,
     .logit_scale = A::LogitScale::factor},
    {.name = "cohere2", .norm = Norm::mean, .ffn_norm = "",
     .feed_forward = A::FeedForward::beside_attention, .output = A::Output::tied,
     .logit_scale = A::LogitScale::factor,
     .windows = {.every = 4, .required = true, .rotation = A::Windows::Rotation::windows_only}},
    {.name = "seed_oss", .pairing = kHalves, .ffn_norm = "post_attention_norm"},
    {.name = "ernie4_5", .biases = true},
    {.name = "hunyuan-dense", .pairing = kHalves, .qk_norm = QkNorm::head_rotated, .alpha_base = true},
    {.name = "minicpm", .biases = true, .rope_factors = A::RopeFactors::any, .scales = A::Scales::required,
     .logit_scale = A::LogitScale::divisor},
    {.name = "mistral3", .experts = {.presence = kWhereCounted}, .biases = true, .rope_factors = A::RopeFactors::any,
     .yarn_keys = true, .temperature = true},
};
// clang-format on

/// GGUF files that are not language models, by their general.architecture or general.type.
constexpr std::pair<std::string_view, std::string_view> kOtherFiles[] = {
    {"clip", "a projector for images or sound (clip, mmproj), which is used with one"},
    {"mmproj", "a projector for images or sound (mmproj), which is used with one"},
    {"adapter", "an adapter (LoRA), which modifies one"},
    {"imatrix", "an importance matrix (imatrix), which is used to quantize one"},
};

}  // namespace

void check_kind(const std::string& architecture, const std::string& type, const std::string& path) {
  for (const auto& [name, what] : kOtherFiles) {
    if (name == architecture || name == type)
      throw ModelError(fmt::format("{} is not a language model but {}", path, what));
  }
  if (architecture.empty()) throw ModelError(fmt::format("{}: key general.architecture is missing", path));
  architecture_of(architecture, path);
}

const Architecture& architecture_of(const std::string& name, const std::string& path) {
  for (const auto& architecture : kArchitectures) {
    if (architecture.name == name) return architecture;
  }
  throw ModelError(fmt::format("{}: architecture '{}' is not supported; winnow supports {}", path, brief(name),
                               supported_architectures()));
}

std::string supported_architectures() {
  std::string out;
  for (const auto& architecture : kArchitectures)
    out += fmt::format("{}{}", out.empty() ? "" : ", ", architecture.name);
  return out;
}

}  // namespace winnow::model
