// SPDX-License-Identifier: Apache-2.0
// Invalid model files: each is refused with one sentence, none may crash.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <random>

#include "model/gguf_check.h"
#include "support/changed_gguf.h"
#include "support/temp.h"
#include "support/tiny_gguf.h"
#include "winnow/error.h"
#include "winnow/model.h"

namespace winnow {
namespace {

class BadModel : public testing::Test {
 protected:
  BadModel() {
    test::write_tiny_gguf({}, path_);
    std::ifstream file(path_, std::ios::binary);
    good_.assign(std::istreambuf_iterator<char>(file), {});
  }

  void write(const std::string& bytes) const { std::ofstream(path_, std::ios::binary) << bytes; }

  std::string error() const { return error_of(path_); }
  static std::string error_of(const std::string& path, const ModelOptions& options = {}) {
    try {
      Model::load(path, options);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  std::string error_with(const std::function<void(test::TinyModel&)>& change) const {
    test::TinyModel model;
    change(model);
    test::write_tiny_gguf(model, path_);
    return error();
  }
  void replace(const std::string& from, const std::string& to) {
    ASSERT_EQ(from.size(), to.size());
    const auto at = good_.find(from);
    ASSERT_NE(at, std::string::npos);
    auto bytes = good_;
    bytes.replace(at, from.size(), to);
    write(bytes);
  }
  static void expect_in(const std::string& part, const std::string& whole) {
    EXPECT_NE(whole.find(part), std::string::npos) << whole;
  }

  test::TempFolder folder_;
  std::string path_ = folder_ / "model.gguf";
  std::string good_;
};

TEST_F(BadModel, the_good_one_loads) { EXPECT_EQ(error(), ""); }

TEST_F(BadModel, files_that_are_none) {
  expect_in("No such file", error_of(folder_ / "absent.gguf"));
  expect_in("is a folder", error_of(folder_ / ""));
  write("");
  expect_in("is empty (0 bytes)", error());
  write("some text that is long enough to be a header");
  expect_in("not a GGUF file", error());
  write("GG");
  expect_in("truncated", error());
}

TEST_F(BadModel, truncated_anywhere) {
  std::mt19937 random(2);
  for (int round = 0; round < 60; ++round) {
    const std::size_t size = 4 + random() % (good_.size() - 4);
    write(good_.substr(0, size));
    expect_in("truncated", error());
  }
}

TEST_F(BadModel, flipped_bytes_never_crash) {
  std::mt19937 random(3);
  const std::size_t header = good_.find("token_embd.weight") + 4000;
  for (int round = 0; round < 400; ++round) {
    auto bytes = good_;
    for (int flips = 0; flips < 3; ++flips) bytes[random() % header] = static_cast<char>(random());
    write(bytes);
    error();  // an error, or a model if the bytes did not matter
  }
}

TEST_F(BadModel, another_architecture) {
  replace("llama.block_count", "llamb.block_count");
  expect_in("key llama.block_count is missing", error());
  test::TinyModel model;
  model.arch = "mamba";
  test::write_tiny_gguf(model, path_);
  expect_in("architecture 'mamba' is not supported; winnow supports llama, qwen2, qwen3, gemma", error());
}

TEST_F(BadModel, shapes_and_keys_that_do_not_fit) {
  replace("blk.1.attn_q.weight", "blk.7.attn_q.weight");
  expect_in("tensor blk.1.attn_q.weight is missing", error());
  replace("blk.0.ffn_norm.weight", "blk.1.ffn_norm.weight");
  expect_in("occurs twice", error());
  expect_in("cannot share", error_with([](test::TinyModel& m) { m.n_head_kv = 3; }));
  replace("<0x41>", "<0x42>");
  expect_in("token", error());
  replace("word270", "word271");
  expect_in("occurs twice", error());
}

TEST_F(BadModel, layers_that_do_not_fit) {
  const auto error_of_layers = [&](const auto& change) {
    return error_with([&](test::TinyModel& m) {
      m.layers.resize(2);
      change(m.layers);
    });
  };
  EXPECT_EQ(error_of_layers([](auto& layers) { layers[1].head_dim = layers[1].n_rot = 32; }), "");
  expect_in("key llama.feed_forward_length has 3 values for 2 layers",
            error_of_layers([](auto& layers) { layers.resize(3); }));
  expect_in("5 query heads cannot share 2 KV heads", error_of_layers([](auto& layers) { layers[1].n_head = 5; }));
  expect_in("the head dimension is 520", error_of_layers([](auto& layers) { layers[1].head_dim = 520; }));
  expect_in("key llama.rope.freq_base is 0 in layer 1, expected 1e-06 to 1e+30",
            error_of_layers([](auto& layers) { layers[1].rope_freq_base = 0; }));
  expect_in("rope.dimension_count is 66, expected an even number from 2 to 64",
            error_of_layers([](auto& layers) { layers[1].n_rot = 66; }));
  expect_in("one tensor of RoPE factors cannot serve layers that rotate 16 pairs and 32 pairs",
            error_with([](test::TinyModel& m) {
              m.rope_factors = true;
              m.layers.resize(2);
              m.layers[1].n_rot = 32;
            }));
}

TEST_F(BadModel, keys_that_change_what_the_network_computes) {
  const auto error_of_key = [&](const test::TinyKey& key) {
    return error_with([&](test::TinyModel& m) { m.keys = {key}; });
  };
  for (const char* key :
       {".attn_logit_softcapping", ".final_logit_softcapping", ".logit_scale", ".residual_scale", ".embedding_scale",
        ".attention.scale", ".attention.clamp_kqv", ".attention.max_alibi_bias"}) {
    expect_in(std::string("key llama") + key + " is not supported for the architecture llama",
              error_of_key({key, 2.0F}));
    EXPECT_EQ(error_of_key({key, 0.0F}), "") << "0 turns nothing on";
  }
  expect_in("key llama.expert_used_count is missing", error_of_key({".expert_count", 8U}));
  for (const unsigned type : {2U, 4U})
    expect_in("expected 1 (mean) or 3 (last)", error_of_key({".pooling_type", type}));
  for (const unsigned type : {0U, 1U, 3U}) EXPECT_EQ(error_of_key({".pooling_type", type}), "");
  expect_in("only causal attention is supported", error_of_key({".attention.causal", false}));
  EXPECT_EQ(error_of_key({".attention.causal", true}), "");
  EXPECT_EQ(error_of_key({".attention.sliding_window", 64U}), "") << "llama.cpp ignores it in this architecture";
  EXPECT_EQ(error_of_key({".vocab_size", 288U}), "");
  expect_in("rope.scaling.type is 'dynamic', expected none, linear, yarn or longrope",
            error_of_key({".rope.scaling.type", "dynamic"}));
}

TEST_F(BadModel, windows) {
  const auto windows_of = [&](const std::string& arch, const std::vector<test::TinyKey>& keys, int layers = 5) {
    test::TinyModel model = test::tiny_of(arch);
    model.n_layer = layers;
    model.keys = keys;
    test::write_tiny_gguf(model, path_);
    std::string out;
    const auto loaded = Model::load(path_);
    for (const auto& layer : loaded->info().layers) out += layer.window > 0 ? 'w' : '.';
    return out;
  };
  const auto error_of_windows = [&](const std::string& arch, const std::vector<test::TinyKey>& keys) {
    test::TinyModel model = test::tiny_of(arch);
    model.n_layer = 5;
    model.keys = keys;
    test::write_tiny_gguf(model, path_);
    return error();
  };
  const std::string window = ".attention.sliding_window";
  const std::string pattern = ".attention.sliding_window_pattern";
  EXPECT_EQ(windows_of("gemma3", {}, 13), "wwwww.wwwww.w");
  EXPECT_EQ(windows_of("cohere2", {}), "www.w");
  EXPECT_EQ(windows_of("olmo2", {{window, 8U}}), "www.w");
  EXPECT_EQ(windows_of("olmo2", {}), ".....");
  EXPECT_EQ(windows_of("gemma3", {{window, 0U}}), ".....");
  EXPECT_EQ(windows_of("gemma3", {{pattern, 0U}}), "wwwww");
  EXPECT_EQ(windows_of("gemma3", {{pattern, 1U}}), ".....");
  EXPECT_EQ(windows_of("gemma3", {{pattern, 2U}}), "w.w.w");
  EXPECT_EQ(windows_of("gemma3", {{pattern, std::vector{false, true, true, false, false}}}), ".ww..");
  EXPECT_EQ(windows_of("exaone4", {{window, 8U}}), ".....") << "as in llama.cpp";
  EXPECT_EQ(windows_of("exaone4", {{window, 8U}}, 64).substr(0, 9), "www.www.w");

  expect_in("key cohere2.attention.sliding_window is 0, expected 1 to", error_of_windows("cohere2", {{window, 0U}}));
  expect_in("key gemma3.attention.sliding_window is 3000000000", error_of_windows("gemma3", {{window, 3000000000U}}));
  expect_in("key gemma3.attention.sliding_window_pattern has 4 values for 5 layers",
            error_of_windows("gemma3", {{pattern, std::vector<bool>(4)}}));
  expect_in("key gemma3.attention.sliding_window_pattern is of type str",
            error_of_windows("gemma3", {{pattern, "all"}}));
  expect_in("key gemma3.rope.freq_base_swa is 0", error_of_windows("gemma3", {{".rope.freq_base_swa", 0.0F}}));
  expect_in("key olmo2.rope.freq_base_swa is not supported for the architecture olmo2",
            error_of_windows("olmo2", {{".rope.freq_base_swa", 500.0F}}));
  EXPECT_EQ(windows_of("gemma2", {}), "w.w.w");
  expect_in("key gemma2.attention.sliding_window is 0, expected 1 to", error_of_windows("gemma2", {{window, 0U}}));
  expect_in("key granite_swa.attention.sliding_window_pattern has 4 values for 5 layers",
            error_of_windows("granite_swa", {{pattern, std::vector<bool>(4)}}));
  expect_in("key granite_swa.attention.sliding_window_pattern is missing",
            error_of_windows("granite_swa", {{pattern, 2U}}));
  expect_in("key granite_swa.attention.rope_pattern has 4 values for 5 layers",
            error_of_windows("granite_swa", {{".attention.rope_pattern", std::vector<bool>(4)}}));
}

TEST_F(BadModel, shapes_of_layers_with_windows) {
  const auto error_of_keys = [&](const std::vector<test::TinyKey>& keys) {
    test::TinyModel model = test::tiny_of("gemma4");
    model.keys = keys;
    test::write_tiny_gguf(model, path_);
    return error();
  };
  EXPECT_EQ(error_of_keys({}), "");
  const auto loaded = Model::load(path_);
  const auto& layers = loaded->info().layers;
  EXPECT_EQ(std::tie(layers[0].n_head_kv, layers[0].head_dim, layers[0].window), std::tuple(4, 32, 8));
  EXPECT_EQ(std::tie(layers[2].n_head_kv, layers[2].head_dim, layers[2].window), std::tuple(2, 64, 0));
  expect_in("keys of 16 and values of 32 dimensions", error_of_keys({{".attention.key_length_swa", 16U}}));
  expect_in("the head dimension is 520, expected 1 to 512",
            error_of_keys({{".attention.key_length", 520U}, {".attention.value_length", 520U}}));
  expect_in("rope.dimension_count is 34, expected an even number from 2 to 32",
            error_of_keys({{".rope.dimension_count_swa", 34U}}));
  expect_in("tensor rope_freqs.weight", error_of_keys({{".rope.dimension_count", 32U}}));
  expect_in("key gemma4.attention.sliding_window_pattern is missing",
            error_of_keys({{".attention.sliding_window_pattern", 2U}}));
}

TEST_F(BadModel, layers_that_read_other_layers_keys_and_embed_tokens) {
  const auto error_of = [&](int shared, const std::vector<test::TinyKey>& keys = {}) {
    test::TinyModel model = test::tiny_of("gemma4");
    model.shared_kv = shared;
    model.layer_embedding = 16;
    model.keys = keys;
    test::write_tiny_gguf(model, path_);
    return error();
  };
  EXPECT_EQ(error_of(3), "");
  EXPECT_EQ(Model::load(path_)->info().kv_bytes_per_token, 2U * 2 * 64 * 2) << "of one layer without a window";
  expect_in("key gemma4.attention.shared_kv_layers is 5, expected 0 to 4", error_of(5));
  expect_in(
      "layer 2 (4 query heads, 2 KV heads of 64 dimensions, window 0) reads the keys of layer 1, which has other sizes "
      "(4, 4 of 32, 8)",
      error_of(4));
  const std::string length = ".embedding_length_per_layer_input";
  expect_in("key gemma4" + length + " is 12, expected a multiple of 8", error_of(3, {{length, 12U}}));
  expect_in("tensor per_layer_token_embd.weight", error_of(3, {{length, 24U}}));
  expect_in("is not supported for the architecture gemma4", error_of(3, {{length, 0U}}));
}

TEST_F(BadModel, caps_sinks_and_temperatures) {
  const auto error_of = [&](const std::string& arch, const test::TinyKey& key) {
    test::TinyModel model = test::tiny_of(arch);
    model.keys = {key};
    test::write_tiny_gguf(model, path_);
    return error();
  };
  for (const char* cap : {".attn_logit_softcapping", ".final_logit_softcapping"}) {
    const std::string key = std::string("gemma2") + cap;
    EXPECT_EQ(error_of("gemma2", {cap, 0.0F}), "") << "0 is no cap";
    expect_in(key + " is 0.0001, expected 0 or 0.001 to 1e+06", error_of("gemma2", {cap, 1e-4F}));
    expect_in("key " + key + " is -30, expected 0 to 1e+06", error_of("gemma2", {cap, -30.0F}));
  }
  EXPECT_EQ(error_of("gemma3", {".final_logit_softcapping", 30.0F}), "");
  expect_in("key gemma3.attn_logit_softcapping is not supported for the architecture gemma3",
            error_of("gemma3", {".attn_logit_softcapping", 50.0F}));
  expect_in("key mistral3.attention.temperature_scale is -1, expected 0 to",
            error_of("mistral3", {".attention.temperature_scale", -1.0F}));
  expect_in("key mistral3.rope.scaling.yarn_beta_fast is 0, expected 1e-06 to",
            error_of("mistral3", {".rope.scaling.yarn_beta_fast", 0.0F}));
  test::write_tiny_gguf(test::tiny_of("granite_swa"), folder_ / "good.gguf");
  for (const float sink : {NAN, INFINITY}) {
    test::GgufChanges changes;
    changes.edit = [sink](const std::string& name, std::span<float> values) {
      if (name == "blk.2.attn_sinks.weight") values[1] = sink;
    };
    test::copy_gguf(folder_ / "good.gguf", path_, changes);
    expect_in(
        "tensor blk.2.attn_sinks.weight has the value " + std::string(std::isnan(sink) ? "nan" : "inf") + " for head 1",
        error());
  }
}

TEST_F(BadModel, tensors_that_the_architecture_has_not) {
  test::TinyModel model;
  model.optional_biases = true;
  test::write_tiny_gguf(model, path_);
  EXPECT_EQ(error(), "");
  std::ifstream file(path_, std::ios::binary);
  good_.assign(std::istreambuf_iterator<char>(file), {});
  replace("blk.1.ffn_up.bias", "blk.1.ffn_uq.bias");
  expect_in("tensor blk.1.ffn_uq.bias is not supported for the architecture llama", error());
}

TEST_F(BadModel, blocks_that_predict_further_tokens_are_left_out) {
  test::TinyModel model;
  model.n_layer = 3;
  model.keys = {{".nextn_predict_layers", 1U}};
  test::write_tiny_gguf(model, path_);
  EXPECT_EQ(Model::load(path_)->info().n_layer, 2);
  expect_in("key llama.nextn_predict_layers is 3, expected 0 to 2", error_with([](test::TinyModel& m) {
              m.n_layer = 3;
              m.keys = {{".nextn_predict_layers", 3U}};
            }));
}

TEST_F(BadModel, experts_that_do_not_fit) {
  const auto error_of_experts = [&](const std::function<void(test::TinyModel&)>& change) {
    return error_with([&](test::TinyModel& m) {
      m.arch = "qwen2moe";
      change(m);
    });
  };
  const auto error_of_key = [&](const test::TinyKey& key) {
    return error_of_experts([&](test::TinyModel& m) { m.keys = {key}; });
  };
  EXPECT_EQ(error_of_experts([](test::TinyModel&) {}), "");
  EXPECT_EQ(error_of_experts([](test::TinyModel& m) { m.n_expert_used = 8; }), "");
  expect_in("key qwen2moe.expert_used_count is 9, expected 1 to 8", error_of_key({".expert_used_count", 9U}));
  expect_in("key qwen2moe.expert_used_count is 0, expected 1 to 8", error_of_key({".expert_used_count", 0U}));
  expect_in("key qwen2moe.expert_count is 0, expected 1 to 1024", error_of_key({".expert_count", 0U}));
  expect_in("key qwen2moe.expert_count is 1025, expected 1 to 1024", error_of_key({".expert_count", 1025U}));
  expect_in("key qwen2moe.expert_group_count is 4, expected 0 to 1", error_of_key({".expert_group_count", 4U}));
  EXPECT_EQ(error_of_key({".expert_group_count", 1U}), "");
  expect_in("key qwen2moe.expert_gating_func is not supported", error_of_key({".expert_gating_func", 2U}));
  expect_in("tensor blk.0.ffn_gate_inp.weight has the shape [64, 8], expected [64, 16]",
            error_of_key({".expert_count", 16U}));
  expect_in("tensor blk.0.ffn_gate_exps.weight has the shape [64, 96, 8], expected [64, 128, 8]",
            error_of_key({".expert_feed_forward_length", 128U}));
  expect_in("tensor blk.0.ffn_gate_shexp.weight has the shape [64, 160], expected [64, 64]",
            error_of_key({".expert_shared_feed_forward_length", 64U}));
  expect_in("16 experts cannot share a feed-forward width of 8", error_of_experts([](test::TinyModel& m) {
              m.n_ff = 8;
              m.n_expert = m.n_expert_used = 16;
              m.keys = {{".expert_feed_forward_length", 0U}};
            }));
  expect_in("key gemma.expert_count is not supported", error_with([](test::TinyModel& m) {
              m.arch = "gemma";
              m.n_expert = 8;
            }));
}

TEST_F(BadModel, keys_of_routers_and_of_layers_without_experts) {
  const auto error_of_key = [&](const test::TinyKey& key) {
    return error_with([&](test::TinyModel& m) {
      m = test::tiny_of("glm4moe");
      m.keys = {key};
    });
  };
  EXPECT_EQ(error_of_key({".expert_gating_func", 2U}), "");
  EXPECT_EQ(Model::load(path_)->info().n_expert, 8) << "the first layer has none";
  expect_in("key glm4moe.expert_gating_func is 3, expected 0 to 2", error_of_key({".expert_gating_func", 3U}));
  expect_in("key glm4moe.expert_weights_scale is inf", error_of_key({".expert_weights_scale", INFINITY}));
  expect_in("key glm4moe.leading_dense_block_count is 4, expected 0 to 3",
            error_of_key({".leading_dense_block_count", 4U}));
  expect_in("tensor blk.0.ffn_gate_inp.weight is missing", error_of_key({".leading_dense_block_count", 0U}));
  expect_in("key glm4moe.expert_shared_count is 1025, expected 0 to 1024",
            error_of_key({".expert_shared_count", 1025U}));
  expect_in("tensor blk.1.ffn_gate_shexp.weight has the shape [64, 192], expected [64, 96]",
            error_of_key({".expert_shared_count", 1U}));
  expect_in("2 shared experts of width 4194304 are together wider than the largest supported width, 4194304",
            error_of_key({".expert_feed_forward_length", 4194304U}));
  expect_in("key qwen2moe.leading_dense_block_count is not supported", error_with([](test::TinyModel& m) {
              m.arch = "qwen2moe";
              m.keys = {{".leading_dense_block_count", 1U}};
            }));
}

TEST_F(BadModel, experts_of_a_type_without_products) {
  test::TinyModel model;
  model.arch = "qwen3moe";
  test::write_tiny_gguf(model, path_);
  std::ifstream file(path_, std::ios::binary);
  std::string bytes(std::istreambuf_iterator<char>(file), {});
  const std::string name = "blk.1.ffn_up_exps.weight";
  const auto type = bytes.find(name) + name.size() + 4 + 3 * 8;  // after the number of dimensions and three of them
  ASSERT_EQ(bytes[type], GGML_TYPE_F32);
  bytes[type] = GGML_TYPE_I32;  // of the same size
  write(bytes);
  expect_in("tensor blk.1.ffn_up_exps.weight is of type i32, for which ggml has no matrix product", error());
}

TEST_F(BadModel, a_hostile_header_asks_for_no_memory) {
  auto bytes = good_;
  for (std::size_t i = 8; i < 24; ++i) bytes[i] = '\x7f';
  write(bytes);
  expect_in("cannot fit", error());
}

TEST_F(BadModel, options_that_cannot_be) {
  ModelOptions options;
  for (const char* scaling : {"yarn", "linear:0", "yarn:4:", "yarn:nan", "linear:4:2048", "longrope", "linear:4 "}) {
    options.rope_scaling = scaling;
    expect_in(std::string("RoPE scaling '") + scaling + "' is not supported: use none, linear:FACTOR,",
              error_of(path_, options));
  }
  options.rope_scaling = "longrope:short";
  expect_in("has no RoPE factors for long and short texts", error_of(path_, options));
  options.rope_scaling = "";
  options.rope_freq_base = -1;
  expect_in("-1", error_of(path_, options));
}

}  // namespace
}  // namespace winnow
