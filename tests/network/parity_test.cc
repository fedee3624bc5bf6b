// SPDX-License-Identifier: Apache-2.0
// The logits of every token by the network without winnow's attention, compared with llama.cpp, through libllama, on
// the same file.
#include "network/parity.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "support/rounding.h"
#include "support/temp.h"
#include "support/tiny_gguf.h"
#include "winnow/error.h"

namespace winnow::test {
namespace {

struct Case {
  std::string name;
  TinyModel model;
  double tolerance = 0;
  double gain = kLargestGain;  ///< assumed by the tolerance
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

/// Every token uses all experts, with its own weights, so that rounding cannot change the choice.
Case case_of(const std::string& name, const TinyModel& model) {
  Case out{model.arch + name, model, tolerance_of(model), largest_gain(model)};
  if (model.experts() > 0) out.model.n_expert_used = model.experts();
  std::replace(out.name.begin(), out.name.end(), '-', '_');
  return out;
}

Case shape(const std::string& arch, int heads, int kv_heads, int head_dim) {
  return case_of("_" + std::to_string(heads) + "_" + std::to_string(kv_heads) + "_" + std::to_string(head_dim),
                 tiny_of_heads(arch, heads, kv_heads, head_dim));
}

Case weights_of(ggml_type type, double tolerance) {
  TinyModel m;
  m.n_embd = 256;
  m.n_ff = 256;
  m.type = type;
  return {ggml_type_name(type), m, tolerance};
}

/// Adds cases with different shapes of heads, and with the optional tensors of the architecture.
void add_files(const TinyArchitecture& row, std::vector<Case>& out) {
  const std::string arch(row.name);
  using Heads = std::tuple<int, int, int>;  // of queries, of keys and values, dimensions
  for (const auto& [heads, kv_heads, head_dim] :
       {Heads(3, 3, 64), Heads(7, 1, 64), Heads(6, 2, 80), Heads(6, 2, 96), Heads(6, 2, 128), Heads(4, 1, 256)})
    out.push_back(shape(arch, heads, kv_heads, head_dim));
  const TinyModel model = tiny_of_heads(arch, 6, 2, 64);
  TinyModel changed = model;
  changed.tied = false;
  if (row.output == OutputMatrix::optional) out.push_back(case_of("_untied", changed));
  changed = model;
  changed.optional_biases = true;
  if (row.optional_biases != Biases{}) out.push_back(case_of("_with_biases", changed));
  changed = model;
  changed.qkv = row.fused_qkv ? QkvTensors::separate : QkvTensors::fused;
  out.push_back(case_of(row.fused_qkv ? "_separate" : "_fused", changed));
}

/// With fewer layers, Command R has no norms of queries and keys.
Case deep_command_r() {
  TinyModel model = tiny_of_heads("command-r", 4, 2, 16);
  model.n_layer = tiny_architecture(model.arch).qk_norm_from_layers;
  model.n_ff = 96;
  return case_of("_deep", model);
}

TinyModel scaled(const std::string& arch, const TinyScaling& scaling) {
  TinyModel model = tiny_of_heads(arch, 6, 2, 64);
  model.scaling = scaling;
  return model;
}

/// Short and long factors; the file's original context decides which ones are used.
Case longrope(const std::string& arch, int original_context, const std::string& name) {
  TinyModel model = scaled(arch, {arch == "phi3" ? "" : "longrope", 0, original_context, 1.19F});
  model.ctx_train = kContext;
  model.longrope = true;
  return case_of(name, model);
}

/// The last block (multi-token prediction) is skipped.
Case with_a_block_left_out() {
  TinyModel model = tiny_of("glm4moe");
  ++model.n_layer;
  model.keys = {{".nextn_predict_layers", 1U}};
  return case_of("_with_a_block_left_out", model);
}

Case without_norms_of_heads() {
  TinyModel model = tiny_of("glm4moe");
  model.optional_norms = false;
  return case_of("_without_norms_of_heads", model);
}

void add_schemes(std::vector<Case>& out) {
  for (const char* arch : {"llama", "granite", "granite_swa", "minicpm", "mistral3"}) {
    TinyModel factors = tiny_of_heads(arch, 6, 2, 64);
    factors.rope_factors = true;
    out.push_back(case_of("_rope_factors", factors));
    factors.scaling = {"linear", 4};
    out.push_back(case_of("_rope_factors_linear", factors));
    factors.scaling = {"yarn", 4, 64};
    out.push_back(case_of("_rope_factors_yarn", factors));
  }
  for (const char* arch : {"phi3", "llama", "granite", "minicpm"}) {
    out.push_back(longrope(arch, kContext, "_short_factors"));
    out.push_back(longrope(arch, kContext / 2, "_long_factors"));
  }
  TinyModel half = scaled("phi3", {});
  half.n_rot = half.head_dim / 2;
  out.push_back(case_of("_half_rotated", half));
  half.scaling = {"yarn", 4, 64};
  out.push_back(case_of("_half_rotated_yarn", half));
  for (const char* arch : {"llama", "qwen2", "qwen3", "glm4", "smollm3", "olmo2", "command-r", "hunyuan-dense",
                           "gemma2", "granite_swa", "mistral3"}) {
    out.push_back(case_of("_linear", scaled(arch, {"linear", 4})));
    // For a Gemma 2 with scaling "none" libllama still divides the frequencies of layers with windows; no real file has
    // a factor then.
    if (std::string(arch) != "gemma2") out.push_back(case_of("_no_scaling", scaled(arch, {"none", 4})));
    out.push_back(case_of("_yarn", scaled(arch, {"yarn", 4, 64})));
    out.push_back(case_of("_yarn_attn_factor", scaled(arch, {"yarn", 8, 128, 0.9F})));
  }
  TinyModel plain_base = tiny_of_heads("hunyuan-dense", 6, 2, 64);
  plain_base.keys = {{".rope.scaling.alpha", 0.0F}};
  out.push_back(case_of("_without_alpha", plain_base));
  TinyModel turns = scaled("mistral3", {"yarn", 8, 0, 1.1F});
  turns.keys = {{".rope.scaling.yarn_log_multiplier", 0.5F},
                {".rope.scaling.yarn_beta_fast", 1.0F},
                {".rope.scaling.yarn_beta_slow", 0.25F}};
  out.push_back(case_of("_yarn_by_its_keys", turns));
  TinyModel unrotated = tiny_of_heads("granite", 6, 2, 64);
  unrotated.keys = {{".rope.scaling.finetuned", false}};
  out.push_back(case_of("_without_rope", unrotated));
}

/// Without the keys, a Gemma 2 has caps of 50 and 30; networks of 46 layers have another scale.
void add_caps(std::vector<Case>& out) {
  TinyModel capped = tiny_of_heads("gemma3", 6, 2, 64);
  capped.keys = {{".final_logit_softcapping", 2.0F}};
  out.push_back(case_of("_capped", capped));
  TinyModel deep = tiny_of_heads("gemma2", 4, 2, 16);
  deep.n_layer = 46;
  deep.n_ff = 96;
  out.push_back(case_of("_deep", deep));
  TinyModel base = tiny_of_heads("gemma2", 6, 2, 64);
  base.keys = {
      {".rope.freq_base_swa", 500.0F}, {".attn_logit_softcapping", 50.0F}, {".final_logit_softcapping", 30.0F}};
  out.push_back(case_of("_base_of_windows", base));
}

/// Adds cases with heads of 512 and 256 dimensions, as in real models, with the keys of windows, and with matrices of
/// values in all layers.
void add_gemma4(std::vector<Case>& out) {
  out.push_back(shape("gemma4", 4, 1, 512));
  TinyModel changed = tiny_of_heads("gemma4", 6, 2, 64);
  changed.all_values = true;
  out.push_back(case_of("_all_values", changed));
  changed.keys = {{".rope.freq_base_swa", 500.0F}};
  out.push_back(case_of("_base_of_windows", changed));
  changed.keys = {{".rope.dimension_count_swa", 16U}};
  out.push_back(case_of("_half_rotated_windows", changed));
  changed.scaling = {"linear", 4};
  out.push_back(case_of("_linear", changed));
  TinyModel embeddings = tiny_of_heads("gemma4", 6, 2, 64);
  embeddings.layer_embedding = 16;
  out.push_back(case_of("_layer_embeddings", embeddings));
  embeddings.shared_kv = 3;
  out.push_back(case_of("_shared_keys", embeddings));
  TinyModel experts = tiny_of_heads("gemma4", 6, 2, 64);
  experts.n_expert = 8;
  experts.router_scale = 32;  // the router's input is divided by sqrt(n_embd)
  out.push_back(case_of("_experts", experts));
  experts.gate_up_experts = true;
  out.push_back(case_of("_gate_up_experts", experts));
}

std::vector<Case> all_cases() {
  std::vector<Case> out;
  for (const auto& row : tiny_architectures()) add_files(row, out);
  out.push_back(deep_command_r());
  out.push_back(with_a_block_left_out());
  out.push_back(without_norms_of_heads());
  add_schemes(out);
  add_caps(out);
  add_gemma4(out);
  out.push_back(weights_of(GGML_TYPE_F16, half_tolerance(10, 2)));
  out.push_back(weights_of(GGML_TYPE_BF16, half_tolerance(7, 2)));
  for (const auto type :
       {GGML_TYPE_Q8_0, GGML_TYPE_Q4_0, GGML_TYPE_Q4_1, GGML_TYPE_Q5_0, GGML_TYPE_Q5_1, GGML_TYPE_Q2_K, GGML_TYPE_Q3_K,
        GGML_TYPE_Q4_K, GGML_TYPE_Q5_K, GGML_TYPE_Q6_K, GGML_TYPE_IQ4_NL, GGML_TYPE_IQ4_XS, GGML_TYPE_IQ3_S}) {
    out.push_back(weights_of(type, quantized_tolerance(2)));
  }
  return out;
}

class GraphParity : public testing::TestWithParam<Case> {
 protected:
  GraphParity() : path_(folder_ / "tiny.gguf") { write_tiny_gguf(GetParam().model, path_); }
  TempFolder folder_;
  std::string path_;
};

TEST_P(GraphParity, every_token_and_a_batch_of_five) {
  expect_parity(path_, GetParam().tolerance, GetParam().gain, kPrompt, {1, 7, 512, kPrompt});
}

INSTANTIATE_TEST_SUITE_P(all, GraphParity, testing::ValuesIn(all_cases()),
                         [](const auto& test) { return test.param.name; });

double error_of(const std::string& path, int rope_sign, DenseAttention::Mapping mapping) {
  benchmark::Llama llama(path, exact(256));
  Network network(path, 1, 1, kPrompt, mapping);
  network.set_rope_sign(rope_sign);
  const auto tokens = random_tokens(kPrompt, network.hparams().n_vocab, 7);
  return worst_row(network.prefill(tokens, kPrompt), llama.decode_all(tokens), network.hparams().n_vocab);
}

/// Checks that a broken network is outside the tolerance.
void expect_breaking_is_noticed(const std::string& path, double tolerance) {
  EXPECT_LT(error_of(path, 1, DenseAttention::grouped), tolerance);
  EXPECT_GT(error_of(path, -1, DenseAttention::grouped), tolerance) << "rotated the wrong way";
  EXPECT_GT(error_of(path, 1, DenseAttention::interleaved), tolerance) << "query heads that read the wrong KV heads";
}

class BrokenNetwork : public testing::TestWithParam<const char*> {};

TEST_P(BrokenNetwork, is_noticed) {
  TempFolder folder;
  const std::string path = folder / "tiny.gguf";
  write_tiny_gguf(shape(GetParam(), 6, 2, 64).model, path);
  expect_breaking_is_noticed(path, quantized_tolerance(2));  // the widest of the tiny networks' tolerances
}

INSTANTIATE_TEST_SUITE_P(all, BrokenNetwork,
                         testing::Values("llama", "qwen2", "qwen3", "gemma", "phi3", "glm4", "olmo2"),
                         [](const auto& test) { return std::string(test.param); });

TEST(GraphParityOfTheRealModel, every_token_and_a_batch_of_five) {
  const auto path = real_model();
  if (!path) GTEST_SKIP() << "WINNOW_TEST_MODEL is not set";
  expect_parity(*path, quantized_tolerance(30), kLargestGain, kPrompt, {7, kPrompt});
  expect_breaking_is_noticed(*path, quantized_tolerance(30));
}

}  // namespace
}  // namespace winnow::test
