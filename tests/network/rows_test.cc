// SPDX-License-Identifier: Apache-2.0
// A row's result does not depend on other rows of the same step, nor on other passes.
#include <gtest/gtest.h>

#include <cstring>
#include <tuple>

#include "network/bf16_kernel.h"
#include "network/network.h"
#include "support/temp.h"
#include "support/tiny_gguf.h"

namespace winnow::test {
namespace {

using network::Packing;

constexpr int kSequences = 40;

struct Case {
  ggml_type type;
  Packing packing = Packing::none;
  int threads = 1;
  int experts = 0;
};

std::string case_of(const testing::TestParamInfo<Case>& test) {
  const auto& c = test.param;
  return std::string(ggml_type_name(c.type)) + (c.packing == Packing::none ? "" : "_resident") +
         (c.experts == 0 ? "" : "_experts") + "_" + std::to_string(c.threads);
}

class StepRows : public testing::TestWithParam<Case> {
 protected:
  /// The logits of one step of the sequences [first, first + count), each after one token.
  static std::vector<float> step(Network& network, int first, int count) {
    std::vector<std::int32_t> tokens;
    std::vector<DenseAttention::Row> rows;
    for (int i = first; i < first + count; ++i) {
      tokens.push_back(40 + 5 * i);
      rows.push_back({i, 1});
    }
    return network.step(tokens, rows);
  }

  void check(const TinyModel& tiny) {
    write_tiny_gguf(tiny, path_);
    Network network(path_, GetParam().threads, kSequences, 2, DenseAttention::grouped, GetParam().packing);
    std::vector<float> alone;
    for (int i = 0; i < kSequences; ++i) {
      const std::int32_t first = 7 + 3 * i;
      network.step(std::span(&first, 1), {{i, 0}});
      const auto row = step(network, i, 1);
      alone.insert(alone.end(), row.begin(), row.end());
    }
    const auto vocabulary = static_cast<std::ptrdiff_t>(network.hparams().n_vocab);
    for (const int count : {2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 40}) {
      const int first = kSequences - count;
      const auto together = step(network, first, count);
      EXPECT_EQ(0, std::memcmp(together.data(), alone.data() + first * vocabulary, together.size() * sizeof(float)))
          << count << " rows of width " << tiny.n_embd;
    }
  }

  TempFolder folder_;
  std::string path_ = folder_ / "tiny.gguf";
};

TEST_P(StepRows, are_bit_for_bit_what_each_is_alone) {
  if (GetParam().packing == Packing::resident && !network::Bf16Kernel::available())
    GTEST_SKIP() << "this build or machine has no bf16 products";
  TinyModel tiny;
  if (GetParam().experts > 0) tiny.arch = "qwen2moe";
  tiny.n_expert = GetParam().experts;
  tiny.type = GetParam().type;
  tiny.n_embd = 256;
  tiny.n_ff = 512;
  tiny.n_ff_expert = tiny.n_ff_shared = 256;
  check(tiny);
  if (ggml_blck_size(tiny.type) > 32) return;
  if (GetParam().packing == Packing::resident) {  // long enough that sums are split
    tiny.n_embd = 576;
    tiny.n_ff = 4096;
    check(tiny);
  }
  tiny.n_embd = 96;
  tiny.n_ff = 160;
  tiny.head_dim = 32;
  check(tiny);
}

std::vector<Case> all_cases() {
  std::vector<Case> out;
  for (const auto type : {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_Q8_0, GGML_TYPE_Q4_0, GGML_TYPE_Q4_1,
                          GGML_TYPE_Q5_0, GGML_TYPE_Q5_1, GGML_TYPE_IQ4_NL, GGML_TYPE_MXFP4, GGML_TYPE_Q2_K,
                          GGML_TYPE_Q3_K, GGML_TYPE_Q4_K, GGML_TYPE_Q5_K, GGML_TYPE_Q6_K, GGML_TYPE_IQ4_XS}) {
    for (const int threads : {1, 3}) out.push_back({type, Packing::none, threads});
    out.push_back({type, Packing::none, 3, 3});  // of 40 rows, each expert gets more than 8
  }
  for (const auto type : {GGML_TYPE_F32, GGML_TYPE_Q4_1}) {
    for (const int threads : {1, 3}) out.push_back({type, Packing::resident, threads});
    out.push_back({type, Packing::resident, 3, 3});
  }
  return out;
}

INSTANTIATE_TEST_SUITE_P(all, StepRows, testing::ValuesIn(all_cases()), case_of);

/// A prompt that passes through the layers step by step.
class Reading {
 public:
  Reading(Network& network, int sequence, int rows, unsigned seed)
      : network_(network),
        sequence_(sequence),
        tokens_(random_tokens(rows, network.hparams().n_vocab, seed)),
        hidden_(network.executor().states(rows, "hidden states")),
        pass_(network.executor().begin_pass(rows, ~std::size_t{0})),
        later_(network.account(), network.hparams(), rows) {
    network_.executor().embed(tokens_, hidden_);
  }

  bool done() const { return layer_ == network_.hparams().n_layer; }
  /// Runs the next chunk through its layer, or some of the layer's experts.
  void advance() {
    auto& executor = network_.executor();
    const bool packs = executor.packs_experts(pass_, layer_);
    const int n = static_cast<int>(tokens_.size());
    if (next_ >= n) {
      if (!packs || !executor.add_experts(pass_, layer_, later_, hidden_)) {
        next_ = 0;
        ++layer_;
      }
      return;
    }
    std::vector<DenseAttention::Row> rows;
    std::vector<std::int32_t> positions;
    for (int i = next_; i < std::min(n, next_ + kChunk); ++i) {
      rows.push_back({sequence_, i});
      positions.push_back(i);
    }
    network_.attention().set_rows(rows);
    later_.begin_chunk(next_);
    executor.run_layer(pass_, layer_, hidden_, next_, positions, network_.attention(),
                       {.later = packs ? &later_ : nullptr});
    next_ += kChunk;
  }
  std::vector<float> result() {
    while (!done()) advance();
    const int rows = hidden_.rows();
    std::vector<float> out(static_cast<std::size_t>(rows) * static_cast<std::size_t>(network_.hparams().n_embd));
    network_.executor().last_states(hidden_, 0, rows, out.data());
    return out;
  }

 private:
  static constexpr int kChunk = 64;

  Network& network_;
  int sequence_;
  std::vector<std::int32_t> tokens_;
  network::States hidden_;
  network::Pass pass_;
  network::ExpertRows later_;
  int layer_ = 0;
  int next_ = 0;
};

class Passes : public testing::TestWithParam<std::tuple<Packing, const char*>> {
 protected:
  Passes() {
    TinyModel tiny = tiny_of(std::get<1>(GetParam()));
    tiny.n_layer = 3;
    tiny.n_embd = 256;
    tiny.n_ff = 256;
    write_tiny_gguf(tiny, path_);
  }
  void SetUp() override {
    if (!network::Bf16Kernel::available()) GTEST_SKIP() << "this build or machine has no bf16 products";
  }
  Network network(Packing packing) const { return {path_, 2, 6, 300, DenseAttention::grouped, packing}; }
  static Packing packing() { return std::get<0>(GetParam()); }

  static std::vector<float> decode(Network& network, int position) {
    return network.step(std::vector<std::int32_t>{50 + position, 90 + position}, {{4, position}, {5, position}});
  }

  TempFolder folder_;
  std::string path_ = folder_ / "tiny.gguf";
};

TEST_P(Passes, that_take_turns_with_decode_steps_give_what_each_gives_alone) {
  constexpr int kRows[] = {300, 20, 200, 100};
  std::vector<std::vector<float>> expected;
  std::vector<std::vector<float>> decoded;
  {
    auto alone = network(packing());
    for (int i = 0; i < 4; ++i) expected.push_back(Reading(alone, i, kRows[i], static_cast<unsigned>(i)).result());
    for (int position = 0; position < 60; ++position) decoded.push_back(decode(alone, position));
    auto plain = network(Packing::none);
    EXPECT_NE(Reading(plain, 0, kRows[0], 0).result(), expected[0]) << "the long prompt was not packed";
    EXPECT_EQ(Reading(plain, 1, kRows[1], 1).result() == expected[1], packing() == Packing::by_rows);
  }
  auto together = network(packing());
  std::vector<std::unique_ptr<Reading>> reading;
  std::mt19937 random(5);
  int position = 0;
  for (int i = 0; i < 4; ++i) {
    reading.push_back(std::make_unique<Reading>(together, i, kRows[i], static_cast<unsigned>(i)));
    for (int turn = 0; turn < 6; ++turn) {  // later prompts begin while earlier ones are between layers
      auto& one = *reading[random() % reading.size()];
      if (!one.done()) one.advance();
      EXPECT_EQ(decode(together, position), decoded[position]) << position;
      ++position;
    }
  }
  for (int left = 30; left > 0; --left, ++position) {
    auto& one = *reading[random() % reading.size()];
    if (!one.done()) one.advance();
    EXPECT_EQ(decode(together, position), decoded[position]) << position;
  }
  for (int i = 0; i < 4; ++i) EXPECT_EQ(reading[i]->result(), expected[i]) << "prompt " << i;
}

std::string packing_of(const testing::TestParamInfo<std::tuple<Packing, const char*>>& test) {
  constexpr const char* kNames[] = {"none", "by_rows", "layer", "resident"};
  return std::string(std::get<1>(test.param)) + "_" + kNames[static_cast<int>(std::get<0>(test.param))];
}

INSTANTIATE_TEST_SUITE_P(all, Passes,
                         testing::Combine(testing::Values(Packing::by_rows, Packing::layer, Packing::resident),
                                          testing::Values("llama", "qwen3moe")),
                         packing_of);

class Room : public Passes {};

TEST_P(Room, is_settled_by_the_first_open_pass_and_freed_after_the_last) {
  auto network = this->network(packing());
  auto& executor = network.executor();
  const auto before = network.account().held();
  {
    const auto kept = executor.begin_pass(300, ~std::size_t{0});
    const auto held = network.account().held();
    EXPECT_GE(held, before + executor.packed_bytes(300));
    auto later = executor.begin_pass(200, 0);
    EXPECT_TRUE(later.room() == kept.room() && later.room()->set.has_value()) << "a later pass finds no room";
    later = {};
    EXPECT_EQ(network.account().held(), held) << "the open pass has lost its room";
  }
  EXPECT_EQ(network.account().held(), before);
  const auto refused = executor.begin_pass(300, executor.packed_bytes(300) - 1);
  EXPECT_FALSE(executor.begin_pass(300, ~std::size_t{0}).room()->set.has_value()) << "a later pass was luckier";
}

INSTANTIATE_TEST_SUITE_P(all, Room,
                         testing::Combine(testing::Values(Packing::by_rows, Packing::layer), testing::Values("llama")),
                         packing_of);

}  // namespace
}  // namespace winnow::test
