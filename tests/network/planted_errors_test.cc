// SPDX-License-Identifier: Apache-2.0
// Mistakes that a program could make with an architecture exceed the tolerance of the parity tests.
#include "network/planted_errors.h"

#include <gtest/gtest.h>

#include "benchmark/llama_cpp.h"
#include "network/network.h"
#include "support/rounding.h"
#include "support/temp.h"

namespace winnow::test {
namespace {

constexpr int kTokens = 30;

class Planted : public testing::TestWithParam<PlantedError> {
 protected:
  Planted() {
    write_tiny_gguf(GetParam().right, folder_ / "unchanged.gguf");
    copy_gguf(folder_ / "unchanged.gguf", right_, GetParam().right_changes);
    write_tiny_gguf(GetParam().wrong, folder_ / "unchanged.gguf");
    copy_gguf(folder_ / "unchanged.gguf", wrong_, GetParam().changes);
  }

  static std::vector<float> of_libllama(const std::string& path) {
    benchmark::LlamaOptions options;
    options.context = 256;
    options.threads = 1;
    options.kv_type = ElementType::f32;
    return benchmark::Llama(path, options).decode_all(tokens());
  }
  static std::vector<float> of_winnow(const std::string& path) {
    return Network(path, 1, 1, kTokens).prefill(tokens(), kTokens);
  }
  static std::vector<std::int32_t> tokens() { return random_tokens(kTokens, kVocabulary, 7); }

  static constexpr int kVocabulary = 288;
  TempFolder folder_;
  std::string right_ = folder_ / "right.gguf";
  std::string wrong_ = folder_ / "wrong.gguf";
};

TEST_P(Planted, error_is_noticed) {
  const auto expected = of_libllama(right_);
  EXPECT_LT(worst_row(of_winnow(right_), expected, kVocabulary), tolerance_of(GetParam().right));
  // The widest of the tiny networks' tolerances.
  EXPECT_GT(worst_row(of_winnow(wrong_), expected, kVocabulary), quantized_tolerance(GetParam().right.n_layer));
}

TEST_P(Planted, error_is_what_its_file_says) {
  EXPECT_LT(worst_row(of_winnow(wrong_), of_libllama(wrong_), kVocabulary), tolerance_of(GetParam().wrong));
}

INSTANTIATE_TEST_SUITE_P(all, Planted, testing::ValuesIn(planted_errors()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace winnow::test
