// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <optional>

#include "attention/cpu/amx.h"
#include "attention/cpu/bf16_product.h"
#include "base/cpu.h"
#include "fixture.h"

namespace winnow::attention::cpu {
namespace {

/// The upper halves of f32 are bf16.
std::uint16_t cut_to_bf16(float x) { return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(x) >> 16); }
double value_of(std::uint16_t x) { return std::bit_cast<float>(static_cast<std::uint32_t>(x) << 16); }

/// Random factors and initial sums.
struct Factors {
  Factors(int rows_, int depth_) : rows(rows_), depth(depth_), sums(noise(z(rows) * kStrip, 3)) {
    for (const float x : noise(z(rows) * z(depth), 1)) left.push_back(cut_to_bf16(x));
    const auto values = noise(z(depth) * kStrip, 2);
    for (int k = 0; k < depth; k += 2) {
      for (int column = 0; column < kStrip; ++column) {
        const std::uint32_t even = cut_to_bf16(values[k * kStrip + column]);
        const std::uint32_t odd = cut_to_bf16(values[(k + 1) * kStrip + column]);
        right.push_back(even | odd << 16);
      }
    }
  }

  double right_at(int k, int column) const {
    return value_of(static_cast<std::uint16_t>(right[k / 2 * kStrip + column] >> (k % 2 * 16)));
  }

  void expect_sums(std::span<const float> got, Start start) const {
    for (int row = 0; row < rows; ++row) {
      for (int column = 0; column < kStrip; ++column) {
        double want = start == Start::from_zero ? 0 : sums[row * kStrip + column];
        double total = std::abs(want);
        for (int k = 0; k < depth; ++k) {
          const double product = value_of(left[row * depth + k]) * right_at(k, column);
          want += product;
          total += std::abs(product);
        }
        // Products of bf16 are exact in f32; each of `depth` additions is rounded, at worst towards zero.
        ASSERT_NEAR(got[row * kStrip + column], want, 2 * depth * total * 0x1p-24)
            << "row " << row << ", column " << column;
      }
    }
  }

  int rows;
  int depth;
  std::vector<std::uint16_t> left;
  std::vector<std::uint32_t> right;
  std::vector<float> sums;
};

void expect_products(void (*multiply)(const StripProduct&, Start)) {
  for (const int rows : {32, 96, 128}) {
    for (const int depth : {32, 64, 96, 128, 256, 512}) {
      SCOPED_TRACE(std::to_string(rows) + " rows, depth " + std::to_string(depth));
      const Factors factors(rows, depth);
      for (const Start start : {Start::from_zero, Start::from_memory}) {
        auto sums = factors.sums;
        multiply({factors.left.data(), factors.right.data(), sums.data(), rows, depth}, start);
        factors.expect_sums(sums, start);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

TEST(StripProduct, by_vectors_agrees_with_double_precision) {
  if (!multiplies_bf16()) GTEST_SKIP() << "this machine has no AVX-512-BF16";
  expect_products(multiply_by_vectors);
}

TEST(StripProduct, by_tiles_agrees_with_double_precision) {
  if (!has_amx_bf16()) GTEST_SKIP() << "this machine has no AMX";
  const AmxScope tiles(ComputeType::bf16);
  expect_products(multiply_by_tiles);
}

}  // namespace
}  // namespace winnow::attention::cpu
