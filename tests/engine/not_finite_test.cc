// SPDX-License-Identifier: Apache-2.0
// Weights that hold NaN, and values that grow too large: an error that names the tensor or the layer, not an answer.
#include <ggml.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "support/spoilt_gguf.h"
#include "support/temp.h"
#include "support/tiny_gguf.h"
#include "winnow/error.h"
#include "winnow/session.h"

namespace winnow {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr Token kAbsent = 9;  // in none of the prompts

class NotFinite : public testing::Test {
 protected:
  explicit NotFinite(ggml_type type = GGML_TYPE_F32, const char* arch = "qwen2") {
    test::TinyModel tiny;
    tiny.n_layer = 3;
    tiny.arch = arch;
    tiny.tied = false;
    tiny.type = type;
    write_tiny_gguf(tiny, path_);
  }

  /// Message of the error thrown by reading twenty tokens and then one more; empty: none.
  std::string error(Token next = 40) const {
    Session session(Model::load(path_), {2, Precision::automatic, 8});
    std::vector<Token> tokens;
    for (Token token = 20; token < 40; ++token) tokens.push_back(token);
    CacheOptions full;
    try {
      auto read = session.prefill(tokens, std::span(&full, 1));
      Cache* const cache = &read.caches.front();
      session.step(std::span(&cache, 1), std::span(&next, 1), read.logits);
    } catch (const ModelError& error) {
      return error.what();
    }
    return "";
  }

  test::TempFolder folder_;
  std::string path_ = folder_ / "model.gguf";
};

class NotFiniteQuantized : public NotFinite {
 protected:
  NotFiniteQuantized() : NotFinite(GGML_TYPE_Q8_0) {}
};

/// A network with 8 experts of 96 x 64.
class NotFiniteExperts : public NotFinite {
 protected:
  NotFiniteExperts() : NotFinite(GGML_TYPE_F32, "qwen2moe") {}
};

/// A network whose file has one matrix for queries, keys and values, and one for gate and up.
class NotFiniteFused : public NotFinite {
 protected:
  NotFiniteFused() : NotFinite(GGML_TYPE_F32, "phi3") {}
};

TEST_F(NotFinite, nothing_is_said_of_a_good_model) { EXPECT_EQ(error(), ""); }

TEST_F(NotFinite, the_tensor_is_named) {
  struct Case {
    std::string tensor;
    std::size_t value;
    std::string row;
  };
  for (const auto& [tensor, value, row] :
       {Case{"blk.0.attn_norm.weight", 3, "0"}, Case{"blk.0.attn_q.weight", 64 * 5, "5"},
        Case{"blk.1.attn_v.bias", 7, "0"}, Case{"blk.1.attn_output.weight", 256 * 3 + 1, "3"},
        Case{"blk.1.ffn_up.weight", 64 * 100 + 63, "100"}, Case{"blk.2.ffn_down.weight", 128 * 63, "63"},
        Case{"output_norm.weight", 0, "0"}, Case{"output.weight", 64 * 287, "287"},
        Case{"token_embd.weight", 64 * 30 + 2, "30"}}) {
    const test::SpoiltValue spoilt(path_, tensor, value, kNan);
    EXPECT_EQ(error(), path_ + ": tensor " + tensor + " has a value in row " + row + " that is not a finite number");
  }
}

TEST_F(NotFinite, a_token_that_comes_while_decoding) {
  const test::SpoiltValue spoilt(path_, "token_embd.weight", 64 * static_cast<std::size_t>(kAbsent), kNan);
  EXPECT_EQ(error(), "");
  EXPECT_NE(error(kAbsent).find("tensor token_embd.weight has a value in row 9"), std::string::npos);
}

TEST_F(NotFinite, values_that_grow_too_large) {
  for (const auto& [tensor, what] : {std::pair<std::string, std::string>{"blk.0.attn_output.weight", "layer 1"},
                                     {"blk.1.ffn_down.weight", "layer 2"},
                                     {"blk.2.ffn_down.weight", "the logits"}}) {
    const test::SpoiltValue spoilt(path_, tensor, 0, 64, 3e38F);
    const std::string said = error();
    EXPECT_NE(said.find(what), std::string::npos) << tensor << ": " << said;
    EXPECT_NE(said.find("became too large"), std::string::npos) << said;
  }
}

TEST_F(NotFiniteQuantized, the_tensor_is_named) {
  constexpr std::size_t kBlock = 34;  // bytes of a q8_0 block: a scale in f16 and 32 values
  const test::SpoiltBytes spoilt(path_, "blk.1.attn_k.weight", 2 * 11 * kBlock, {'\0', '\x7e'});  // NaN
  EXPECT_NE(error().find("tensor blk.1.attn_k.weight has a value in row 11"), std::string::npos) << error();
}

TEST_F(NotFiniteFused, rows_are_those_of_the_file) {
  for (const auto& [tensor, row] : {std::pair<std::string, std::size_t>{"blk.1.attn_qkv.weight", 3},
                                    {"blk.1.attn_qkv.weight", 300},
                                    {"blk.0.ffn_up.weight", 200}}) {
    const test::SpoiltValue spoilt(path_, tensor, 64 * row, kNan);
    EXPECT_EQ(error(), path_ + ": tensor " + tensor + " has a value in row " + std::to_string(row) +
                           " that is not a finite number");
  }
}

TEST_F(NotFiniteExperts, nothing_is_said_of_a_good_model) { EXPECT_EQ(error(), ""); }

TEST_F(NotFiniteExperts, the_tensor_is_named) {
  for (const auto& [tensor, values, row] :
       {std::tuple<std::string, std::size_t, int>{"blk.1.ffn_gate_inp.weight", 64 * 3, 3},
        {"blk.0.ffn_gate_inp_shexp.weight", 7, 0},
        {"blk.1.ffn_gate_exps.weight", 64 * 96 * 2, 2 * 96},
        {"blk.0.ffn_down_exps.weight", 64 * 96 * 5 + 96 * 3, 5 * 64 + 3}}) {
    const test::SpoiltValue spoilt(path_, tensor, values, kNan);
    EXPECT_EQ(error(), path_ + ": tensor " + tensor + " has a value in row " + std::to_string(row) +
                           " that is not a finite number");
  }
}

/// Each row gets valid experts for any output of the router.
TEST_F(NotFiniteExperts, a_router_that_says_nothing) {
  for (const float value : {kNan, std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()}) {
    const test::SpoiltValue spoilt(path_, "blk.1.ffn_gate_inp.weight", 0, std::size_t{64} * 8, value);
    EXPECT_NE(error().find("tensor blk.1.ffn_gate_inp.weight has a value"), std::string::npos) << error();
  }
}

}  // namespace
}  // namespace winnow
