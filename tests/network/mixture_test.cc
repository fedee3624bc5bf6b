// SPDX-License-Identifier: Apache-2.0
// Mixtures of experts: the logits of every token compared with llama.cpp's.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <stdexcept>

#include "network/parity.h"
#include "network/routing.h"
#include "support/named_model.h"
#include "support/rounding.h"
#include "support/spoilt_gguf.h"
#include "support/temp.h"
#include "support/tiny_gguf.h"

namespace winnow::test {
namespace {

NamedModel experts_of(const char* arch, const std::function<void(TinyModel&)>& change = {},
                      const std::string& suffix = "") {
  TinyModel model = tiny_of(arch);
  if (model.experts() == 0) model.n_expert = 8;
  if (change) change(model);
  std::string name = arch + suffix;
  std::replace(name.begin(), name.end(), '-', '_');
  return {name, model};
}

void default_widths(TinyModel& m) {
  m.n_ff_expert = m.n_ff / m.n_expert_used;
  m.n_ff_shared = m.n_ff;
  m.keys = {{".expert_feed_forward_length", 0U}, {".expert_shared_feed_forward_length", 0U}};
}

std::vector<NamedModel> all_cases() {
  const auto choose = [](int used, int of) {
    return [used, of](TinyModel& m) {
      m.n_expert = of;
      m.n_expert_used = used;
    };
  };
  return {
      experts_of("llama"),
      experts_of("qwen2moe"),
      experts_of("qwen2moe", default_widths, "_default_widths"),
      experts_of("qwen3moe"),
      experts_of("olmoe"),
      experts_of("granite"),
      experts_of("granitemoe"),
      experts_of("granite_swa"),
      experts_of("mistral3"),
      experts_of(
          "granitemoe", [](TinyModel& m) { m.n_ff_shared = 0; }, "_nothing_shared"),
      experts_of("glm4moe"),
      experts_of(
          "glm4moe",
          [](TinyModel& m) {
            m.keys = {{".expert_weights_norm", false}, {".expert_weights_scale", 0.0F}};
          },
          "_weights_as_they_are"),
      experts_of("minimax-m2"),
      experts_of("gpt-oss"),
      experts_of("gpt-oss", choose(1, 8), "_one_of_eight"),
      experts_of("qwen3moe", choose(1, 8), "_one_of_eight"),
      experts_of("qwen3moe", choose(1, 1), "_a_single_one"),
      experts_of("qwen3moe", choose(8, 8), "_all_eight"),
      experts_of("olmoe", choose(5, 8), "_five_of_eight"),
      experts_of("qwen2moe", choose(2, 64), "_two_of_64"),
  };
}

/// Writes a file in which rounding cannot change the choice of experts.
void write_clear(TinyModel model, const std::string& path) {
  constexpr std::uint32_t kMostSeeds = 20;
  for (; model.seed <= kMostSeeds; ++model.seed) {
    write_tiny_gguf(model, path);
    if (is_clear(path, model)) return;
  }
  throw std::runtime_error("no seed chooses experts so that rounding cannot choose others");
}

class Mixture : public testing::TestWithParam<NamedModel> {
 protected:
  Mixture() : path_(folder_ / "tiny.gguf") { write_clear(GetParam().model, path_); }

  TempFolder folder_;
  std::string path_;
};

TEST_P(Mixture, gives_llama_cpp_s_logits_of_every_token_and_a_batch_of_five) {
  const auto& model = GetParam().model;
  expect_parity(path_, tolerance_of(model), largest_gain(model), kPrompt, {1, 7, kPrompt});
}

INSTANTIATE_TEST_SUITE_P(all, Mixture, testing::ValuesIn(all_cases()),
                         [](const auto& test) { return test.param.name; });

TEST(MixtureOf64, leaves_experts_without_a_token) {
  const NamedModel c = experts_of("qwen2moe", [](TinyModel& m) { m.n_expert = 64; });
  const TempFolder folder;
  write_tiny_gguf(c.model, folder / "tiny.gguf");
  for (const auto& used : Routing::of(folder / "tiny.gguf", c.model, random_tokens(kPrompt, 288, 7)).used) {
    EXPECT_LT(used.size(), 64U);
    EXPECT_GT(used.size(), 8U) << "the router is of one mind";
  }
}

/// Rounded weights could choose other experts, so every token uses all experts here.
void expect_parity_of_all_chosen(const char* arch, ggml_type type, double tolerance) {
  const TempFolder folder;
  const std::string path = folder / "tiny.gguf";
  TinyModel model = tiny_of(arch);
  model.type = type;
  model.n_embd = 256;
  model.n_ff_expert = 256;
  model.n_expert = model.n_expert_used = 3;
  write_tiny_gguf(model, path);
  expect_parity(path, tolerance, largest_gain(model), kPrompt, {1, 7, kPrompt});
}

class MixtureOfType : public testing::TestWithParam<std::pair<ggml_type, double>> {};

TEST_P(MixtureOfType, gives_llama_cpp_s_logits) {
  expect_parity_of_all_chosen("qwen3moe", GetParam().first, GetParam().second);
}

TEST(GptOssOfItsType, gives_llama_cpp_s_logits) {
  const TinyModel model = tiny_of("gpt-oss");
  expect_parity_of_all_chosen("gpt-oss", GGML_TYPE_MXFP4,
                              rounding_tolerance(2.8 / 127, model.n_layer, largest_gain(model)));
}

INSTANTIATE_TEST_SUITE_P(all, MixtureOfType,
                         testing::Values(std::pair{GGML_TYPE_F16, half_tolerance(10, 2)},
                                         std::pair{GGML_TYPE_BF16, half_tolerance(7, 2)},
                                         std::pair{GGML_TYPE_Q8_0, quantized_tolerance(2)},
                                         std::pair{GGML_TYPE_Q4_0, quantized_tolerance(2)},
                                         std::pair{GGML_TYPE_Q5_1, quantized_tolerance(2)},
                                         std::pair{GGML_TYPE_MXFP4, quantized_tolerance(2)},
                                         std::pair{GGML_TYPE_Q2_K, quantized_tolerance(2)},
                                         std::pair{GGML_TYPE_Q4_K, quantized_tolerance(2)},
                                         std::pair{GGML_TYPE_Q6_K, quantized_tolerance(2)},
                                         std::pair{GGML_TYPE_IQ4_XS, quantized_tolerance(2)}),
                         [](const auto& test) { return std::string(ggml_type_name(test.param.first)); });

class BrokenMixture : public testing::Test {
 protected:
  static constexpr int kExperts = 4;

  explicit BrokenMixture(const char* arch = "qwen3moe") : path_(folder_ / "tiny.gguf") {
    model_ = tiny_of(arch);
    model_.n_expert = kExperts;
    layer_ = tiny_architecture(arch).leading_dense;
    write_clear(model_, path_);
    tokens_ = random_tokens(kPrompt, 288, 7);
    expected_ = benchmark::Llama(path_, exact(256)).decode_all(tokens_);
  }

  double error(Network& network) const {
    return worst_row(network.prefill(tokens_, kPrompt), expected_, network.hparams().n_vocab);
  }
  double error() const {
    Network network(path_, 1, 1, kPrompt);
    return error(network);
  }
  /// Overwrites a tensor of the first layer that has experts.
  SpoiltBytes put(const std::string& part, const std::vector<char>& bytes) const {
    return {path_, tensor_of(layer_, part), 0, bytes};
  }
  std::vector<char> bytes(const std::string& part) const { return TensorFile(path_).bytes(tensor_of(layer_, part)); }
  /// Moves each expert to the next one's place.
  static std::vector<char> rotated(std::vector<char> experts) {
    std::rotate(experts.begin(), experts.end() - static_cast<std::ptrdiff_t>(experts.size() / kExperts), experts.end());
    return experts;
  }
  double error_with_gate_and_up_swapped() const {
    const auto gate = bytes("ffn_gate_exps");
    const auto up = bytes("ffn_up_exps");
    const auto one = put("ffn_gate_exps", up);
    const auto other = put("ffn_up_exps", gate);
    return error();
  }

  TempFolder folder_;
  std::string path_;
  TinyModel model_;
  int layer_ = 0;
  std::vector<std::int32_t> tokens_;
  std::vector<float> expected_;
  double noticed_ = quantized_tolerance(2);  ///< the widest of the tiny networks' tolerances
};

TEST_F(BrokenMixture, is_not_what_the_others_begin_with) { EXPECT_LT(error(), tolerance_of(model_)); }

TEST_F(BrokenMixture, is_noticed_with_gate_and_up_swapped) { EXPECT_GT(error_with_gate_and_up_swapped(), noticed_); }

TEST_F(BrokenMixture, is_noticed_with_experts_rotated_by_one) {
  for (const char* part : {"ffn_gate_exps", "ffn_up_exps", "ffn_down_exps", "ffn_gate_inp"}) {
    const auto spoilt = put(part, rotated(bytes(part)));
    EXPECT_GT(error(), noticed_) << part;
  }
}

TEST_F(BrokenMixture, is_noticed_with_weights_that_are_not_normed) {
  Network network(path_, 1, 1, kPrompt);
  const_cast<model::Hparams&>(network.hparams()).routing.normed = false;
  EXPECT_GT(error(network), noticed_);
}

TEST_F(BrokenMixture, is_noticed_with_one_expert_fewer) {
  Network network(path_, 1, 1, kPrompt);
  const_cast<model::Hparams&>(network.hparams()).kinds.front().n_expert_used = 1;
  EXPECT_GT(error(network), noticed_);
}

class BrokenSigmoids : public BrokenMixture {
 protected:
  BrokenSigmoids() : BrokenMixture("glm4moe") {}

  double error_with(const std::function<void(model::Routing&)>& change) const {
    Network network(path_, 1, 1, kPrompt);
    change(const_cast<model::Hparams&>(network.hparams()).routing);
    return error(network);
  }
};

TEST_F(BrokenSigmoids, are_not_what_the_others_begin_with) { EXPECT_LT(error(), tolerance_of(model_)); }

TEST_F(BrokenSigmoids, are_noticed_as_a_softmax) {
  EXPECT_GT(error_with([](model::Routing& r) { r.gating = model::Gating::softmax; }), noticed_);
}

TEST_F(BrokenSigmoids, are_noticed_without_their_scale) {
  EXPECT_GT(error_with([](model::Routing& r) { r.scale = 1; }), noticed_);
}

TEST_F(BrokenSigmoids, are_noticed_without_the_bias_of_the_choice) {
  const SpoiltValue none(path_, "blk.1.exp_probs_b.bias", 0, kExperts, 0);
  EXPECT_GT(error(), noticed_);
}

class BrokenBiases : public BrokenMixture {
 protected:
  BrokenBiases() : BrokenMixture("gpt-oss") {}

  /// The error if a bias of the first layer is set to zero.
  double error_without(const std::string& part) const {
    const auto count = static_cast<std::size_t>(ggml_nelements(&TensorFile(path_).tensor(bias_of(0, part))));
    const SpoiltValue none(path_, bias_of(0, part), 0, count, 0);
    return error();
  }
};

TEST_F(BrokenBiases, are_not_what_the_others_begin_with) { EXPECT_LT(error(), tolerance_of(model_)); }

TEST_F(BrokenBiases, are_noticed_where_one_is_left_out) {
  for (const char* part : {"ffn_gate_inp", "ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"})
    EXPECT_GT(error_without(part), noticed_) << part;
}

TEST_F(BrokenBiases, are_noticed_where_they_are_those_of_the_next_expert) {
  for (const char* part : {"ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"}) {
    const SpoiltBytes spoilt(path_, bias_of(0, part), 0, rotated(TensorFile(path_).bytes(bias_of(0, part))));
    EXPECT_GT(error(), noticed_) << part;
  }
}

TEST_F(BrokenBiases, are_noticed_with_gate_and_up_swapped) { EXPECT_GT(error_with_gate_and_up_swapped(), noticed_); }

TEST_F(BrokenBiases, are_noticed_with_another_activation) {
  Network network(path_, 1, 1, kPrompt);
  auto broken = *network.hparams().architecture;
  broken.activation = model::Activation::silu_gate;
  const_cast<model::Hparams&>(network.hparams()).architecture = &broken;
  EXPECT_GT(error(network), noticed_);
}

TEST(GateUpExperts, are_the_separate_ones) {
  const TempFolder folder;
  TinyModel model = tiny_of("qwen3moe");
  write_tiny_gguf(model, folder / "separate.gguf");
  model.gate_up_experts = true;
  write_tiny_gguf(model, folder / "one.gguf");
  const auto tokens = random_tokens(kPrompt, 288, 7);
  Network separate(folder / "separate.gguf", 1, 1, kPrompt);
  Network one(folder / "one.gguf", 1, 1, kPrompt);
  EXPECT_EQ(one.prefill(tokens, kPrompt), separate.prefill(tokens, kPrompt));
}

TEST(MixtureOnThreads, does_not_depend_on_how_many_there_are) {
  for (const auto type : {GGML_TYPE_F32, GGML_TYPE_Q8_0, GGML_TYPE_Q4_K}) {
    const TempFolder folder;
    TinyModel model = tiny_of("qwen2moe");
    model.type = type;
    model.n_ff_expert = model.n_ff_shared = 256;
    write_tiny_gguf(model, folder / "tiny.gguf");
    const auto tokens = random_tokens(60, 288, 7);
    Network one(folder / "tiny.gguf", 1, 1, 60);
    Network three(folder / "tiny.gguf", 3, 1, 60);
    EXPECT_EQ(one.prefill(tokens, 60), three.prefill(tokens, 60)) << ggml_type_name(type);
  }
}

}  // namespace
}  // namespace winnow::test
