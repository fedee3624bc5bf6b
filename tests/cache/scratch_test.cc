// SPDX-License-Identifier: Apache-2.0
// Rows that are copied out of a scratch and back, in its own encoding and in another one.
#include "cache/scratch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <span>
#include <vector>

#include "base/as_size.h"

namespace winnow::cache {
namespace {

constexpr int kHeads = 2;
constexpr int kDim = 48;  // a block and a half of q8_0
constexpr int kRows = 10;

class ScratchTest : public testing::TestWithParam<ElementType> {
 protected:
  ScratchTest() : scratch_(account_, GetParam(), kHeads, kDim, kRows) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    for (auto* const numbers : {&keys_, &values_}) {
      numbers->resize(as_size(kRows * kHeads * kDim));
      for (float& x : *numbers) x = normal(random);
    }
    scratch_.extend(std::vector<std::int32_t>(kRows));
    const auto size = as_size(kHeads * kDim);
    for (int row = 0; row < kRows; ++row) {
      const auto at = as_size(row) * size;
      scratch_.store(row, keys_.data() + at, values_.data() + at);
    }
  }

  static std::vector<float> decoded(const Rows& rows, int row) {
    std::vector<float> out(as_size(rows.dim));
    decode_row(rows.type, rows.row(row), out);
    return out;
  }

  /// Largest difference between the numbers given and those in the scratch, as a share of their row's largest number.
  double error() const {
    double most = 0;
    for (int row = 0; row < kRows; ++row) {
      for (int head = 0; head < kHeads; ++head) {
        const auto at = as_size((row * kHeads + head) * kDim);
        most = std::max(most, distance(std::span(keys_).subspan(at, kDim), decoded(scratch_.keys(head), row)));
        most = std::max(most, distance(std::span(values_).subspan(at, kDim), decoded(scratch_.values(head), row)));
      }
    }
    return most;
  }

  static double distance(std::span<const float> want, std::span<const float> got) {
    float most = 0;
    float largest = 0;
    for (std::size_t i = 0; i < want.size(); ++i) {
      most = std::max(most, std::abs(want[i] - got[i]));
      largest = std::max(largest, std::abs(want[i]));
    }
    return static_cast<double>(most / largest);
  }

  MemoryAccount account_;
  std::vector<float> keys_;  ///< [row][head][dim]
  std::vector<float> values_;
  LayerScratch scratch_;
};

TEST_P(ScratchTest, rows_of_its_own_type_come_back_as_they_were) {
  const double before = error();
  std::vector<std::byte> rows(scratch_.bytes_of_rows(4));
  scratch_.copy_rows(3, 4, GetParam(), rows.data());
  const auto key = decoded(scratch_.keys(1), 5);
  const std::vector<float> zero(as_size(kHeads * kDim));
  for (int row = 3; row < 7; ++row) scratch_.store(row, zero.data(), zero.data());
  EXPECT_EQ(error(), 1);
  scratch_.put_rows(3, 4, GetParam(), rows.data());
  EXPECT_EQ(error(), before);
  EXPECT_EQ(decoded(scratch_.keys(1), 5), key);
}

/// q8_0 rounds to 1 / 127 of a block's largest number, with a factor of 11 bits.
TEST_P(ScratchTest, rows_as_q8_0_come_back_rounded) {
  const double before = error();
  std::vector<std::byte> rows(2 * kHeads * kRows * row_bytes(ElementType::q8_0, kDim));
  scratch_.copy_rows(0, kRows, ElementType::q8_0, rows.data());
  const std::vector<float> zero(as_size(kHeads * kDim));
  for (int row = 0; row < kRows; ++row) scratch_.store(row, zero.data(), zero.data());
  scratch_.put_rows(0, kRows, ElementType::q8_0, rows.data());
  EXPECT_GT(error(), before);
  EXPECT_LT(error(), 2 * before + 0.5 / 127 + std::ldexp(1, -11));
}

TEST_P(ScratchTest, multiplies_rows_by_a_vector_or_themselves) {
  const std::span<const float> vector(values_.data(), kDim);
  for (const auto of : {RowProducts::Of::keys, RowProducts::Of::values}) {
    const auto by_vector = scratch_.products({of, 1, vector});
    const auto by_themselves = scratch_.products({of, 1});
    ASSERT_EQ(by_vector.size(), as_size(kRows));
    for (int j = 0; j < kRows; ++j) {
      const auto row = decoded(of == RowProducts::Of::keys ? scratch_.keys(1) : scratch_.values(1), j);
      double product = 0;
      double square = 0;
      for (std::size_t c = 0; c < row.size(); ++c) {
        product += static_cast<double>(row[c]) * static_cast<double>(vector[c]);
        square += std::pow(static_cast<double>(row[c]), 2);
      }
      EXPECT_NEAR(by_vector[as_size(j)], product, 1e-6 * square);
      EXPECT_NEAR(by_themselves[as_size(j)], square, 1e-6 * square);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(types, ScratchTest, testing::Values(ElementType::f32, ElementType::f16, ElementType::bf16),
                         [](const auto& one) { return std::string(name_of(one.param)); });

}  // namespace
}  // namespace winnow::cache
