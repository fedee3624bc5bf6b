// SPDX-License-Identifier: Apache-2.0
// Prompts whose experts are packed one at a time after all rows, compared with llama.cpp and with other ways of
// packing.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "network/bf16_kernel.h"
#include "network/parity.h"
#include "support/named_model.h"
#include "support/temp.h"
#include "support/tiny_gguf.h"

namespace winnow::test {
namespace {

using network::Packing;

constexpr int kRows = 300;

/// A model whose tokens use all experts, since rounding might choose others, with a router that does not enlarge
/// errors.
NamedModel experts_of(const char* arch, const std::function<void(TinyModel&)>& change = {},
                      const std::string& suffix = "") {
  TinyModel model = tiny_of(arch);
  model.n_expert = model.n_expert_used = 3;
  model.router_scale = 1;
  if (change) change(model);
  std::string name = arch + suffix;
  std::replace(name.begin(), name.end(), '-', '_');
  return {name, model};
}

std::vector<NamedModel> all_cases() {
  const auto of_type = [](ggml_type type) {
    return [type](TinyModel& m) {
      m.type = type;
      m.n_embd = m.n_ff_expert = 256;
    };
  };
  return {
      experts_of("qwen2moe"),
      experts_of("qwen3moe"),
      experts_of("granitemoe"),
      experts_of("glm4moe"),
      experts_of("minimax-m2"),
      experts_of("gpt-oss"),
      experts_of(
          "gpt-oss", [](TinyModel& m) { m.n_expert = m.n_expert_used = 1; }, "_a_single_one"),
      experts_of("gpt-oss", of_type(GGML_TYPE_MXFP4), "_mxfp4"),
      experts_of("qwen3moe", of_type(GGML_TYPE_Q8_0), "_q8_0"),
      experts_of("qwen3moe", of_type(GGML_TYPE_Q4_0), "_q4_0"),
      experts_of("qwen3moe", of_type(GGML_TYPE_Q4_K), "_q4_K"),
      experts_of("qwen3moe", of_type(GGML_TYPE_F16), "_f16"),
  };
}

/// The tolerance of products in bf16, whose 7 bits are coarser than llama.cpp's rounding, except for blocks of 8 bits.
double tolerance_of_packed(const TinyModel& model) {
  const double gain = largest_gain(model);
  const double blocks = ggml_is_quantized(model.type) ? rounding_tolerance(2.8 / 127, model.n_layer, gain) : 0;
  return half_tolerance(7, model.n_layer, gain) + blocks;
}

class PackedMixture : public testing::TestWithParam<NamedModel> {
 protected:
  PackedMixture() { write_tiny_gguf(GetParam().model, path_); }
  void SetUp() override {
    if (!network::Bf16Kernel::available()) GTEST_SKIP() << "this build or machine has no bf16 products";
  }

  TempFolder folder_;
  std::string path_ = folder_ / "tiny.gguf";
};

TEST_P(PackedMixture, gives_llama_cpp_s_logits_of_every_token) {
  const auto tokens = random_tokens(kRows, 288, 3);
  const auto expected = benchmark::Llama(path_, exact(kContext)).decode_all(tokens);
  const auto plain = Network(path_, 2, 1, kRows).prefill(tokens, 128);
  for (const auto packing : {Packing::by_rows, Packing::layer, Packing::resident}) {
    Network packed(path_, 2, 1, kRows, DenseAttention::grouped, packing);
    const auto got = packed.prefill(tokens, 128);
    EXPECT_LT(worst_row(got, expected, 288), tolerance_of_packed(GetParam().model));
    EXPECT_NE(got, plain) << "nothing was packed";
  }
}

TEST_P(PackedMixture, depends_neither_on_chunks_nor_on_threads) {
  const auto tokens = random_tokens(kRows, 288, 3);
  const auto read = [&](int threads, int chunk) {
    return Network(path_, threads, 1, kRows, DenseAttention::grouped, Packing::layer).prefill(tokens, chunk);
  };
  const auto expected = read(1, kRows);
  for (const int chunk : {7, 64, 100, 299}) EXPECT_EQ(read(2, chunk), expected) << chunk;
  EXPECT_EQ(read(3, kRows), expected);
}

INSTANTIATE_TEST_SUITE_P(all, PackedMixture, testing::ValuesIn(all_cases()),
                         [](const auto& test) { return test.param.name; });

/// Tokens use some of 64 experts: most experts have few rows, some none. If rounding chooses another expert, only that
/// row is wrong, because there is one layer.
class SomeOf64 : public testing::TestWithParam<ggml_type> {
 protected:
  SomeOf64() {
    model_ = tiny_of("qwen3moe");
    model_.n_layer = 1;
    model_.n_embd = model_.n_ff_expert = 256;
    model_.n_expert = 64;
    model_.type = GetParam();
    write_tiny_gguf(model_, path_);
  }
  void SetUp() override {
    if (!network::Bf16Kernel::available()) GTEST_SKIP() << "this build or machine has no bf16 products";
  }

  /// The fraction of a prompt's rows that differ by more than rounding.
  double share_of_wrong_rows(Packing packing, int rows) const {
    const auto tokens = random_tokens(rows, 288, 3);
    const auto expected = Network(path_, 2, 1, rows).prefill(tokens, 128);
    Network packed(path_, 2, 1, rows, DenseAttention::grouped, packing);
    EXPECT_TRUE(packed.executor().packs_experts(packed.executor().begin_pass(rows, ~std::size_t{0}), 0));
    const auto got = packed.prefill(tokens, 128);
    int wrong = 0;
    for (std::size_t row = 0; row < tokens.size(); ++row) {
      const auto of = [&](const std::vector<float>& all) { return std::span(all).subspan(row * 288, 288); };
      if (!(worst_row(of(got), of(expected), 288) < tolerance_of_packed(model_))) ++wrong;
    }
    return static_cast<double>(wrong) / rows;
  }

  TempFolder folder_;
  std::string path_ = folder_ / "tiny.gguf";
  TinyModel model_;
};

TEST_P(SomeOf64, are_right_with_few_rows_and_without) { EXPECT_LT(share_of_wrong_rows(Packing::layer, 20), 0.1); }

TEST_P(SomeOf64, are_packed_where_they_have_enough_rows) {
  EXPECT_LT(share_of_wrong_rows(Packing::by_rows, 2100), 0.1);
}

INSTANTIATE_TEST_SUITE_P(all, SomeOf64, testing::Values(GGML_TYPE_F32, GGML_TYPE_MXFP4, GGML_TYPE_Q8_0),
                         [](const auto& test) { return std::string(ggml_type_name(test.param)); });

class PackedExperts : public testing::Test {
 protected:
  void SetUp() override {
    if (!network::Bf16Kernel::available()) GTEST_SKIP() << "this build or machine has no bf16 products";
  }
  std::string write(const TinyModel& model) const {
    const auto path = folder_ / "tiny.gguf";
    write_tiny_gguf(model, path);
    return path;
  }

  TempFolder folder_;
};

TEST_F(PackedExperts, are_the_same_in_one_tensor_for_gate_and_up) {
  TinyModel model = tiny_of("qwen3moe");
  const auto tokens = random_tokens(kRows, 288, 3);
  const auto read = [&] {
    return Network(write(model), 2, 1, kRows, DenseAttention::grouped, Packing::layer).prefill(tokens, 128);
  };
  const auto separate = read();
  model.gate_up_experts = true;
  EXPECT_EQ(read(), separate);
}

TEST_F(PackedExperts, take_the_memory_of_one) {
  TinyModel model = tiny_of("qwen2moe");
  model.n_ff_shared = 256;
  Network network(write(model), 2, 1, 1, DenseAttention::grouped, Packing::layer);
  // q and o are 256 x 256, k and v 256 x 128, the shared expert's three matrices 256 x 256: 2 bytes per weight. An
  // expert's gate and up have 96 outputs in blocks of 64, its down 96 inputs in blocks of 32. For the layer and for the
  // expert, each of two threads has buffers of 1,024 floats and 64 rows of 1,056 bf16 numbers.
  EXPECT_EQ(network.executor().packed_bytes(300),
            2U * 256 * (2 * 256 + 2 * 128 + 3 * 256 + 2 * 128 + 96) + 2 * 2 * (4 * 1024 + 2 * 64 * 1056));
}

TEST_F(PackedExperts, need_32_rows_each_on_average) {
  TinyModel model = tiny_of("qwen3moe");
  model.n_expert = 8;
  Network network(write(model), 1, 1, 1, DenseAttention::grouped, Packing::by_rows);
  auto& executor = network.executor();
  const auto packs = [&](int rows, std::size_t spare) {
    return executor.packs_experts(executor.begin_pass(rows, spare), 0);
  };
  const std::size_t enough = executor.packed_bytes(128);
  EXPECT_FALSE(packs(127, ~std::size_t{0}));
  EXPECT_TRUE(packs(128, enough));
  EXPECT_FALSE(packs(128, enough - 1)) << "there is no room";
  EXPECT_GT(executor.row_bytes(128), executor.row_bytes(127));
  EXPECT_EQ(executor.row_bytes(127), 4U * network.hparams().n_embd);
}

TEST_F(PackedExperts, are_not_those_that_ggml_multiplies_by_tiles) {
  TinyModel model = tiny_of("qwen3moe");
  model.type = GGML_TYPE_Q4_K;
  model.n_embd = model.n_ff_expert = 256;
  const auto path = write(model);
  const auto pack = [&](Packing packing) {
    Network network(path, 1, 1, 1, DenseAttention::grouped, packing);
    return network.executor().packs_experts(network.executor().begin_pass(1 << 20, ~std::size_t{0}), 0);
  };
  EXPECT_FALSE(pack(Packing::by_rows));
  EXPECT_TRUE(pack(Packing::layer));
}

TEST_F(PackedExperts, are_not_those_whose_sum_is_normed) {
  TinyModel model = tiny_of("gemma4");
  model.n_expert = 8;
  Network network(write(model), 1, 1, 1, DenseAttention::grouped, Packing::layer);
  auto& executor = network.executor();
  EXPECT_FALSE(executor.packs_experts(executor.begin_pass(300, ~std::size_t{0}), 0));
  EXPECT_EQ(executor.row_bytes(300), 4U * network.hparams().n_embd);
}

TEST_F(PackedExperts, of_layers_without_experts_are_none) {
  TinyModel model = tiny_of("glm4moe");  // its first layer is dense
  Network network(write(model), 1, 1, 1, DenseAttention::grouped, Packing::layer);
  const auto pass = network.executor().begin_pass(300, ~std::size_t{0});
  EXPECT_FALSE(network.executor().packs_experts(pass, 0));
  EXPECT_TRUE(network.executor().packs_experts(pass, 1));
}

}  // namespace
}  // namespace winnow::test
