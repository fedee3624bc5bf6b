// SPDX-License-Identifier: Apache-2.0
// Products in bf16 on packed weights, compared with double precision and with ggml's products.
#include "network/linear.h"

#include <ggml-cpp.h>
#include <ggml-cpu.h>
#include <gguf.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "network/bf16_rows.h"
#include "network/network.h"
#include "support/rounding.h"
#include "support/temp.h"
#include "support/tiny_gguf.h"

namespace winnow::test {
namespace {

using network::Packing;

/// bf16 has 8 significant bits.
constexpr double kRoundoff = 0x1p-8;

std::uint16_t nearest(float x) {
  if (std::isnan(x)) return 0x7FC0;
  std::uint32_t bits = 0;
  std::memcpy(&bits, &x, sizeof(bits));
  const std::uint32_t low = bits & 0xFFFF;
  std::uint32_t high = bits >> 16;
  if (low > 0x8000 || (low == 0x8000 && (high & 1) != 0)) ++high;
  return static_cast<std::uint16_t>(high);
}

TEST(Bf16Rows, round_to_the_nearest_with_ties_to_even) {
  std::vector<float> values = {0,
                               -0.0F,
                               1,
                               1 + 0x1p-8F,
                               1 + 0x3p-8F,
                               1 + 0x1.01p-8F,
                               -1 - 0x1p-8F,
                               0x1p-140F,
                               3.4e38F,
                               std::numeric_limits<float>::infinity(),
                               -std::numeric_limits<float>::infinity()};
  std::mt19937 random(1);
  while (values.size() < 101) values.push_back(std::normal_distribution<float>()(random));
  for (const std::size_t n : {std::size_t{1}, std::size_t{7}, values.size()}) {
    std::vector<std::uint16_t> got(128, 0xFFFF);
    network::round_row(values.data(), static_cast<std::ptrdiff_t>(n), 128, got.data());
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], i < n ? nearest(values[i]) : 0) << i;
  }
  const std::vector<float> nan(40, std::numeric_limits<float>::quiet_NaN());
  std::vector<std::uint16_t> got(40);
  network::round_row(nan.data(), 40, 40, got.data());
  for (const auto x : got) EXPECT_EQ(x & 0x7FFF, 0x7FC0);
}

TEST(Bf16Rows, are_packed_as_documented) {
  constexpr int kInputs = 96;
  std::vector<std::uint16_t> rows(network::kBlockOutputs * kInputs);
  std::iota(rows.begin(), rows.end(), std::uint16_t{0});
  std::vector<std::uint16_t> packed(rows.size());
  network::pack_rows(rows.data(), kInputs, kInputs, packed.data());
  for (int input = 0; input < kInputs; ++input) {
    for (int output = 0; output < network::kBlockOutputs; ++output) {
      const int place = input / 32 * 32 * 64 + input % 32 / 2 * 128 + output * 2 + input % 2;
      EXPECT_EQ(packed[place], rows[output * kInputs + input]) << input << " " << output;
    }
  }
}

/// The matrices of a file as doubles, read without winnow.
class File {
 public:
  explicit File(const std::string& path) {
    ggml_context* context = nullptr;
    gguf_.reset(gguf_init_from_file(path.c_str(), {false, &context}));
    context_.reset(context);
  }
  /// [outputs][inputs]
  std::vector<float> matrix(const std::string& name) const {
    const ggml_tensor* const t = ggml_get_tensor(context_.get(), name.c_str());
    std::vector<float> out(ggml_nelements(t));
    const auto to_float = ggml_get_type_traits(t->type)->to_float;
    if (to_float == nullptr) {
      std::memcpy(out.data(), t->data, out.size() * sizeof(float));
    } else {
      to_float(t->data, out.data(), ggml_nelements(t));
    }
    return out;
  }

 private:
  gguf_context_ptr gguf_;
  ggml_context_ptr context_;
};

/// x times several matrices, in one graph.
std::vector<std::vector<float>> products(const network::PackedSet& set, MemoryAccount& account, std::vector<float>& x,
                                         const std::vector<ggml_tensor*>& weights, int threads) {
  network::Bf16Kernels kernels(account, threads);
  network::Linear linear(kernels);
  const ggml_context_ptr context(ggml_init({std::size_t{64} << 20, nullptr, false}));
  linear.begin({.packed = &set});
  ggml_tensor* const input = ggml_new_tensor_2d(context.get(), GGML_TYPE_F32, weights[0]->ne[0],
                                                static_cast<std::int64_t>(x.size()) / weights[0]->ne[0]);
  std::memcpy(input->data, x.data(), x.size() * sizeof(float));
  ggml_cgraph* const graph = ggml_new_graph(context.get());
  std::vector<ggml_tensor*> nodes;
  for (auto* const w : weights) {
    nodes.push_back(linear.product(context.get(), w, input));
    ggml_build_forward_expand(graph, nodes.back());
  }
  ggml_graph_compute_with_ctx(context.get(), graph, threads);
  kernels.rethrow();
  std::vector<std::vector<float>> out;
  for (const auto* const node : nodes) {
    const auto* const data = static_cast<const float*>(node->data);
    out.emplace_back(data, data + ggml_nelements(node));
  }
  return out;
}

/// Each element must be within the error of rounding both factors and adding in f32.
void expect_close(const std::vector<float>& got, const std::vector<float>& x, const std::vector<float>& w,
                  std::size_t inputs) {
  const std::size_t rows = x.size() / inputs;
  const std::size_t outputs = w.size() / inputs;
  ASSERT_EQ(got.size(), rows * outputs);
  const double bound = 2 * kRoundoff + kRoundoff * kRoundoff + static_cast<double>(inputs) * 0x1p-23;
  double worst = 0;
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t o = 0; o < outputs; ++o) {
      double sum = 0;
      double size = 0;
      for (std::size_t i = 0; i < inputs; ++i) {
        const double term = static_cast<double>(x[r * inputs + i]) * w[o * inputs + i];
        sum += term;
        size += std::abs(term);
      }
      const double error = std::abs(got[r * outputs + o] - sum) / size;
      if (!(error <= worst)) worst = error;  // not std::max: NaN must not be lost
    }
  }
  EXPECT_LT(worst, bound);
  EXPECT_GT(worst, 0) << "nothing was rounded";
}

class Bf16Products : public testing::Test {
 protected:
  void SetUp() override {
    if (!network::Bf16Kernel::available()) GTEST_SKIP() << "this build or machine has no bf16 products";
  }

  void check(const TinyModel& tiny, std::initializer_list<int> rows) {
    const std::string path = folder_ / "tiny.gguf";
    write_tiny_gguf(tiny, path);
    const File file(path);
    const auto weights = model::Weights::load(path);
    const auto& w = weights->layer(1);
    const std::vector<const ggml_tensor*> matrices = {w.q.weight, w.k.weight, w.down.weight};
    MemoryAccount account;
    network::PackedSet set(*weights, account, network::PackedSet::bytes(matrices), 1);
    set.begin(matrices);
    set.pack({0, 1});
    const auto wq = file.matrix("blk.1.attn_q.weight");
    const auto wk = file.matrix("blk.1.attn_k.weight");
    const auto down = file.matrix("blk.1.ffn_down.weight");
    for (const int n : rows) {
      for (const int threads : {1, 2}) {
        SCOPED_TRACE(std::to_string(n) + " rows, " + std::to_string(threads) + " threads");
        auto x = normal(n * tiny.n_embd);
        const auto out = products(set, account, x, {w.q.weight, w.k.weight}, threads);
        expect_close(out[0], x, wq, static_cast<std::size_t>(tiny.n_embd));
        expect_close(out[1], x, wk, static_cast<std::size_t>(tiny.n_embd));
        x = normal(n * tiny.n_ff);
        expect_close(products(set, account, x, {w.down.weight}, threads)[0], x, down,
                     static_cast<std::size_t>(tiny.n_ff));
      }
    }
  }

  std::vector<float> normal(int n) {
    std::vector<float> out(n);
    for (float& x : out) x = std::normal_distribution<float>()(random_);
    return out;
  }

  TempFolder folder_;
  std::mt19937 random_{7};
};

/// A text that grows is read on from its last token, in other chunks than when it is read at once.
TEST_F(Bf16Products, of_a_block_are_the_same_bits_beside_any_blocks_and_on_any_threads) {
  TinyModel tiny;
  tiny.n_embd = 1024;
  for (const int inputs : {2048, 3072, 4096}) {
    tiny.n_ff = inputs;
    const std::string path = folder_ / ("tiny" + std::to_string(inputs));
    write_tiny_gguf(tiny, path);
    const auto weights = model::Weights::load(path);
    auto* const down = weights->layer(1).down.weight;
    const std::vector<const ggml_tensor*> matrices = {down};
    MemoryAccount account;
    network::PackedSet set(*weights, account, network::PackedSet::bytes(matrices), 1);
    set.begin(matrices);
    set.pack({0, 1});
    constexpr int kRows = 170;
    auto x = normal(kRows * inputs);
    const auto together = products(set, account, x, {down}, 1).front();
    for (const int count : {64, 128, kRows}) {
      for (const int threads : {1, 2}) {
        std::vector<float> apart;
        for (int first = 0; first < kRows; first += count) {
          const int rows = std::min(count, kRows - first);
          std::vector<float> some(x.begin() + first * inputs, x.begin() + (first + rows) * inputs);
          auto out = products(set, account, some, {down}, threads).front();
          apart.insert(apart.end(), out.begin(), out.begin() + rows * tiny.n_embd);
        }
        ASSERT_EQ(apart, std::vector(together.begin(), together.begin() + kRows * tiny.n_embd))
            << inputs << " inputs, " << count << " rows, " << threads << " threads";
      }
    }
  }
}

TEST_F(Bf16Products, are_within_the_bound_of_double_precision_for_shapes_that_do_not_divide) {
  TinyModel tiny;
  tiny.n_embd = 80;
  tiny.n_ff = 1100;  // more than one packing step takes
  tiny.n_head = 3;
  tiny.n_head_kv = 1;
  tiny.head_dim = 80;
  check(tiny, {1, 15, 16, 17, 100, 300});
}

TEST_F(Bf16Products, are_the_same_for_every_number_of_threads) {
  const std::string path = folder_ / "tiny.gguf";
  TinyModel tiny;
  tiny.n_embd = 576;
  tiny.n_ff = 640;
  write_tiny_gguf(tiny, path);
  const auto tokens = random_tokens(150, 250, 1);
  for (const int chunk : {20, 150}) {
    std::vector<float> expected;
    for (const int threads : {1, 2, 3}) {
      Network network(path, threads, 1, 150, DenseAttention::grouped, Packing::layer);
      const auto got = network.prefill(tokens, chunk);
      if (expected.empty()) expected = got;
      EXPECT_TRUE(got == expected) << threads << " threads, " << chunk << " rows at once";
    }
  }
}

class Bf16ProductsOfType : public Bf16Products, public testing::WithParamInterface<ggml_type> {};

TEST_P(Bf16ProductsOfType, are_within_the_bound_of_double_precision) {
  TinyModel tiny;
  tiny.n_embd = 256;
  tiny.n_ff = 1280;
  tiny.type = GetParam();
  check(tiny, {33});
}

INSTANTIATE_TEST_SUITE_P(all, Bf16ProductsOfType,
                         testing::Values(GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_Q8_0, GGML_TYPE_Q4_0,
                                         GGML_TYPE_Q4_1, GGML_TYPE_Q5_0, GGML_TYPE_Q5_1, GGML_TYPE_Q2_K, GGML_TYPE_Q3_K,
                                         GGML_TYPE_Q4_K, GGML_TYPE_Q5_K, GGML_TYPE_Q6_K, GGML_TYPE_IQ4_NL,
                                         GGML_TYPE_IQ4_XS, GGML_TYPE_IQ3_S),
                         [](const auto& test) { return std::string(ggml_type_name(test.param)); });

class PackedNetwork : public Bf16Products, public testing::WithParamInterface<const char*> {
 protected:
  std::string write(ggml_type type) {
    TinyModel tiny;
    tiny.arch = GetParam();
    tiny.n_embd = 256;
    tiny.n_ff = 256;
    tiny.type = type;
    const std::string path = folder_ / "tiny.gguf";
    write_tiny_gguf(tiny, path);
    return path;
  }
};

/// On one side, weights and activations are rounded: as much error as rounding only activations on both sides.
TEST_P(PackedNetwork, gives_the_logits_of_ggml_but_for_rounding) {
  const auto path = write(GGML_TYPE_F32);
  Network plain(path, 1, 1, 300);
  const auto tokens = random_tokens(300, plain.hparams().n_vocab, 3);
  const auto expected = plain.prefill(tokens, 128);
  for (const auto packing : {Packing::by_rows, Packing::layer, Packing::resident}) {
    Network packed(path, 1, 1, 300, DenseAttention::grouped, packing);
    const auto got = packed.prefill(tokens, 128);
    // The error over all rows: the worst of 300 rows is far from the typical row of the derivation.
    EXPECT_LT(worst_row(got, expected, static_cast<int>(got.size())), half_tolerance(7, 2));
    EXPECT_NE(got, expected) << "nothing was packed";
  }
}

/// ggml configures a thread's AMX tiles once; a kernel that changes the configuration must restore it.
TEST_P(PackedNetwork, leaves_ggml_as_it_was) {
  const auto path = write(GGML_TYPE_Q4_0);
  Network plain(path, 2, 1, 300);
  Network packed(path, 2, 1, 300, DenseAttention::grouped, Packing::by_rows);
  const auto tokens = random_tokens(300, plain.hparams().n_vocab, 3);
  const auto few = std::span(tokens).first(20);
  const auto expected = plain.prefill(few, 20);
  EXPECT_EQ(packed.prefill(few, 20), expected) << "20 rows are packed";
  packed.prefill(tokens, 128);
  EXPECT_EQ(packed.prefill(few, 20), expected);
}

INSTANTIATE_TEST_SUITE_P(all, PackedNetwork, testing::Values("llama", "qwen2", "qwen3", "gemma"),
                         [](const auto& test) { return std::string(test.param); });

class PackedMemory : public PackedNetwork {};

TEST_P(PackedMemory, is_counted_and_given_back) {
  const auto path = write(GGML_TYPE_Q8_0);
  const auto tokens = random_tokens(300, 250, 3);
  Network plain(path, 1, 1, 300);
  plain.prefill(tokens, 128);
  Network packed(path, 1, 1, 300, DenseAttention::grouped, Packing::layer);
  const std::size_t bytes = packed.executor().packed_bytes(300);
  // Three matrices of 256 x 256 in the feed-forward part, two for queries and output, two for keys and values: 2 bytes
  // per weight. The packing thread's buffers hold 1,024 floats and 64 rows of 1,056 bf16 numbers.
  EXPECT_EQ(bytes, 2U * 256 * (3 * 256 + 2 * 256 + 2 * 128) + 4 * 1024 + 2 * 64 * 1056);
  packed.prefill(tokens, 128);
  EXPECT_GE(packed.account().peak(), bytes);
  EXPECT_LT(packed.account().held(), plain.account().held() + bytes);
}

TEST_P(PackedMemory, that_is_not_there_leaves_the_products_to_ggml) {
  const auto path = write(GGML_TYPE_Q8_0);
  const auto tokens = random_tokens(300, 250, 3);
  Network plain(path, 1, 1, 300);
  Network packed(path, 1, 1, 300, DenseAttention::grouped, Packing::layer);
  EXPECT_EQ(packed.prefill(tokens, 128, packed.executor().packed_bytes(300) - 1), plain.prefill(tokens, 128));
}

TEST_P(PackedMemory, is_taken_for_good_by_resident_weights_which_all_steps_use) {
  const auto path = write(GGML_TYPE_F32);
  Network plain(path, 2, 16, 4);
  Network packed(path, 2, 16, 4, DenseAttention::grouped, Packing::resident);
  const int vocabulary = plain.hparams().n_vocab;
  for (const int rows : {16, 1, 4, 16}) {
    const auto tokens = random_tokens(rows, vocabulary, static_cast<unsigned>(rows));
    std::vector<DenseAttention::Row> places;
    for (int i = 0; i < rows; ++i) places.push_back({i, 0});
    const auto got = packed.step(tokens, places);
    const auto expected = plain.step(tokens, places);
    EXPECT_NE(got, expected);
    EXPECT_LT(worst_row(got, expected, vocabulary), half_tolerance(7, 2));
    EXPECT_GE(packed.account().held(), packed.executor().packed_bytes(rows));
  }
}

INSTANTIATE_TEST_SUITE_P(all, PackedMemory, testing::Values("llama"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace winnow::test
