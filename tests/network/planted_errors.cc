// SPDX-License-Identifier: Apache-2.0
#include "network/planted_errors.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace winnow::test {

namespace {

/// Two files of one model that differ by `changes`.
PlantedError by_changes(const std::string& name, const TinyModel& model, GgufChanges changes) {
  return {name, model, model, std::move(changes), {}};
}

/// Two files whose keys differ.
template <typename Change>
PlantedError by_keys(const std::string& name, const TinyModel& model, const Change& change) {
  PlantedError out{name, model, model, {}, {}};
  change(out.wrong);
  return out;
}

PlantedError by_key(const std::string& name, const TinyModel& model, const TinyKey& key) {
  return by_keys(name, model, [&](TinyModel& wrong) { wrong.keys.push_back(key); });
}

/// Edits all values of the tensor of this name, or of those of all blocks.
GgufChanges edited(const std::string& name, const std::function<void(std::span<float>)>& edit) {
  GgufChanges changes;
  changes.edit = [name, edit](const std::string& tensor, std::span<float> values) {
    if (tensor == name || tensor.ends_with("." + name)) edit(values);
  };
  return changes;
}

GgufChanges zeroed(const std::string& name) {
  return edited(name, [](std::span<float> values) { std::fill(values.begin(), values.end(), 0.0F); });
}

/// A model with one head, for which norms of heads and of rows are the same.
TinyModel of_one_head(const std::string& arch) {
  TinyModel model = tiny_of_heads(arch, 1, 1, 64);
  model.tied = false;
  return model;
}

TinyModel as_wide_as_its_heads(const std::string& arch) {
  TinyModel model = tiny_of(arch);
  model.n_embd = model.n_head * model.head_dim;
  model.tied = false;
  return model;
}

TinyModel with_scaling(const std::string& arch, const TinyScaling& scaling) {
  TinyModel model = tiny_of(arch);
  model.scaling = scaling;
  return model;
}

/// The rows' weights repeat those of one head, so that only the range of the average differs.
PlantedError heads_normed_one_by_one() {
  const TinyModel model = tiny_of("olmo2");
  const auto head = static_cast<std::ptrdiff_t>(model.head_dim);
  const auto repeat = [head](const std::string& tensor, std::span<float> values) {
    if (tensor.find("_q_norm") == std::string::npos && tensor.find("_k_norm") == std::string::npos) return;
    for (auto to = values.begin() + head; to != values.end(); to += head) std::copy_n(values.begin(), head, to);
  };
  GgufChanges wrong{.arch = "exaone4", .edit = repeat};
  wrong.lengths = {{"_q_norm", head}, {"_k_norm", head}};
  return {"heads_normed_one_by_one", model, model, wrong, {.edit = repeat}};
}

void add_norms_and_products(std::vector<PlantedError>& out) {
  out.push_back(by_changes("norm_before_instead_of_after", of_one_head("olmo2"),
                           {"qwen3", {{"post_attention_norm", "attn_norm"}, {"post_ffw_norm", "ffn_norm"}}}));
  out.push_back(by_changes("norm_after_instead_of_before", of_one_head("qwen3"),
                           {"olmo2", {{"attn_norm", "post_attention_norm"}, {"ffn_norm", "post_ffw_norm"}}}));
  out.push_back(heads_normed_one_by_one());
  out.push_back(by_changes("norm_without_its_bias", tiny_of("starcoder2"), zeroed("attn_norm.bias")));
  out.push_back(by_changes("output_norm_without_its_bias", tiny_of("phi2"), zeroed("output_norm.bias")));
  out.push_back(by_changes("attention_output_without_its_bias", tiny_of("phi2"), zeroed("attn_output.bias")));
  out.push_back(by_changes("down_without_its_bias", tiny_of("starcoder2"), zeroed("ffn_down.bias")));
  out.push_back(by_changes("logits_without_their_bias", tiny_of("phi2"), zeroed("output.bias")));
  out.push_back(
      by_changes("gate_and_up_swapped", tiny_of("llama"), {"", {{"ffn_gate", "ffn_up"}, {"ffn_up", "ffn_gate"}}}));
  for (const char* arch : {"phi3", "glm4"}) {
    out.push_back(by_changes(std::string("fused_gate_after_up_in_") + arch, tiny_of(arch),
                             edited("ffn_up.weight", [](std::span<float> values) {
                               std::rotate(values.begin(), values.begin() + std::ssize(values) / 2, values.end());
                             })));
  }
  const TinyModel fused = tiny_of("phi3");
  const auto q = static_cast<std::ptrdiff_t>(fused.n_head * fused.head_dim) * fused.n_embd;
  const auto k = static_cast<std::ptrdiff_t>(fused.n_head_kv * fused.head_dim) * fused.n_embd;
  out.push_back(by_changes("fused_values_before_keys", fused, edited("attn_qkv.weight", [=](std::span<float> values) {
                             std::rotate(values.begin() + q, values.begin() + q + k, values.end());
                           })));
}

void add_scales(std::vector<PlantedError>& out) {
  const TinyModel granite = tiny_of("granite");
  out.push_back(by_key("embedding_scale_left_out", granite, {".embedding_scale", 1.0F}));
  out.push_back(by_key("residual_scale_left_out", granite, {".residual_scale", 1.0F}));
  TinyModel all_added = granite;  // so that attention has its full weight
  all_added.keys = {{".residual_scale", 1.0F}};
  out.push_back(by_key("attention_scale_left_out", all_added, {".attention.scale", 0.0F}));
  out.push_back(by_key("logit_scale_inverted", granite, {".logit_scale", 0.125F}));
  out.push_back(by_key("logit_scale_inverted_in_command_r", tiny_of("command-r"), {".logit_scale", 16.0F}));
}

void add_rotations(std::vector<PlantedError>& out) {
  out.push_back(by_changes("halves_instead_of_neighbours", as_wide_as_its_heads("llama"), {.arch = "qwen2"}));
  out.push_back(by_changes("neighbours_instead_of_halves", as_wide_as_its_heads("qwen2"), {.arch = "internlm2"}));
  out.push_back(by_changes("layer_without_rope_rotated", tiny_of("smollm3"), {.arch = "ernie4_5"}));
  out.push_back(by_keys("whole_head_rotated", tiny_of("glm4"), [](TinyModel& m) { m.n_rot = m.head_dim; }));
  TinyModel unrotated = tiny_of("granite");
  unrotated.keys = {{".rope.scaling.finetuned", false}};
  out.push_back(by_key("network_without_rope_rotated", unrotated, {".rope.scaling.finetuned", true}));
  TinyModel plain_base = tiny_of("hunyuan-dense");
  plain_base.keys = {{".rope.scaling.alpha", 0.0F}};
  out.push_back(by_changes("norm_before_the_rotation", plain_base, {.arch = "qwen3"}));
  out.push_back(by_key("base_without_its_alpha", tiny_of("hunyuan-dense"), {".rope.scaling.alpha", 0.0F}));
  out.push_back(
      by_keys("linear_scaling_left_out", with_scaling("llama", {"linear", 4}), [](TinyModel& m) { m.scaling = {}; }));
}

void add_schemes(std::vector<PlantedError>& out) {
  constexpr float kFactor = 8;
  const float magnitude = 1 + 0.1F * std::log(kFactor);
  const TinyModel yarn = with_scaling("llama", {"yarn", kFactor, 64});
  out.push_back(by_keys("magnitude_squared", yarn, [&](TinyModel& m) { m.scaling.attn_factor = magnitude; }));
  out.push_back(by_keys("magnitude_left_out", yarn, [&](TinyModel& m) { m.scaling.attn_factor = 1 / magnitude; }));
  out.push_back(by_keys("all_pairs_interpolated", yarn, [&](TinyModel& m) {
    m.scaling = {"linear", kFactor, 0, magnitude};
  }));
  out.push_back(by_keys("ramp_of_another_context", yarn, [](TinyModel& m) { m.scaling.original_context = 256; }));
  TinyModel factors = tiny_of("llama");
  factors.rope_factors = true;
  out.push_back(
      by_changes("frequencies_times_their_factors", factors, edited("rope_freqs.weight", [](std::span<float> values) {
                   for (float& value : values) value = 1 / value;
                 })));
  TinyModel longrope = tiny_of("phi3");
  longrope.longrope = true;
  out.push_back(by_changes("factors_of_long_texts_for_a_short_one", longrope,
                           {"", {{"factors_long", "factors_short"}, {"factors_short", "factors_long"}}}));
}

void add_attention(std::vector<PlantedError>& out) {
  constexpr float kNoCap = 1e5F;
  const TinyModel gemma = tiny_of("gemma2");
  out.push_back(by_key("cap_of_attention_left_out", gemma, {".attn_logit_softcapping", kNoCap}));
  // Capping by c before the scale s = 1 / 8, s c tanh(q·k / c), equals capping by s c after it.
  out.push_back(by_key("cap_before_the_scale", gemma, {".attn_logit_softcapping", 3.0F / 8}));
  out.push_back(by_key("final_cap_left_out", gemma, {".final_logit_softcapping", kNoCap}));
  out.push_back(by_key("final_cap_of_attention", gemma, {".final_logit_softcapping", 3.0F}));
  const TinyModel granite = tiny_of("granite_swa");
  out.push_back(by_changes("sinks_left_out", granite, edited("attn_sinks.weight", [](std::span<float> values) {
                             std::fill(values.begin(), values.end(), -1000.0F);
                           })));
  out.push_back(by_changes("sinks_of_other_heads", granite, edited("attn_sinks.weight", [](std::span<float> values) {
                             std::rotate(values.begin(), values.begin() + 1, values.end());
                           })));
  out.push_back(
      by_key("layers_without_rope_rotated", granite, {".attention.rope_pattern", std::vector{true, true, true, true}}));
  const TinyModel mistral = tiny_of("mistral3");
  out.push_back(by_key("temperature_left_out", mistral, {".attention.temperature_scale", 0.0F}));
  out.push_back(by_key("temperature_a_token_late", mistral, {".rope.scaling.original_context_length", 9U}));
}

/// Multiplies all values of a tensor in all blocks.
GgufChanges multiplied(const std::string& name, float by) {
  return edited(name, [by](std::span<float> values) {
    for (float& value : values) value *= by;
  });
}

void add_gemma4(std::vector<PlantedError>& out) {
  const TinyModel gemma = tiny_of("gemma4");
  const auto ones = [](std::span<float> values) { std::fill(values.begin(), values.end(), 1.0F); };
  out.push_back(by_changes("scale_of_a_layer_left_out", gemma, edited("layer_output_scale.weight", ones)));
  out.push_back(by_changes("pairs_that_stand_still_turned", gemma, edited("rope_freqs.weight", ones)));
  out.push_back(by_changes("logits_of_normed_heads_divided", gemma, multiplied("attn_q_norm.weight", 1.0F / 8)));
  out.push_back(by_key("base_of_windows_of_all_layers", gemma, {".rope.freq_base_swa", 1e6F}));
  out.push_back(by_key("cap_of_logits_left_out", gemma, {".final_logit_softcapping", 1e5F}));
  TinyModel embeddings = gemma;
  embeddings.layer_embedding = 16;
  out.push_back(by_changes("embeddings_of_layers_without_their_scale", embeddings,
                           multiplied("per_layer_token_embd.weight", 1.0F / 4)));
  out.push_back(
      by_changes("embeddings_of_layers_without_their_norm", embeddings, edited("per_layer_proj_norm.weight", ones)));
  out.push_back(by_changes(
      "embeddings_of_the_layer_before", embeddings, edited("per_layer_model_proj.weight", [=](std::span<float> values) {
        std::rotate(values.begin(), values.begin() + std::ptrdiff_t{16} * embeddings.n_embd, values.end());
      })));
  TinyModel experts = gemma;
  experts.n_expert = 8;
  experts.n_expert_used = 8;
  experts.router_scale = 32;
  out.push_back(by_changes("scales_of_experts_left_out", experts, edited("ffn_down_exps.scale", ones)));
  out.push_back(by_changes("router_not_divided_by_the_width", experts, multiplied("ffn_gate_inp.scale", 8)));
  out.push_back(by_changes("router_without_its_scale", experts, edited("ffn_gate_inp.scale", ones)));
  out.push_back(by_changes("norms_of_branches_swapped", experts,
                           {"", {{"post_ffw_norm_1", "post_ffw_norm_2"}, {"post_ffw_norm_2", "post_ffw_norm_1"}}}));
  out.push_back(by_changes("experts_read_what_the_feed_forward_part_reads", experts,
                           {"", {{"ffn_norm", "pre_ffw_norm_2"}, {"pre_ffw_norm_2", "ffn_norm"}}}));
}

}  // namespace

std::vector<PlantedError> planted_errors() {
  std::vector<PlantedError> out;
  add_norms_and_products(out);
  add_scales(out);
  add_rotations(out);
  add_schemes(out);
  add_attention(out);
  add_gemma4(out);
  return out;
}

}  // namespace winnow::test
