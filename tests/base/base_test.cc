// SPDX-License-Identifier: Apache-2.0
// Counted memory and RoPE shifts.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "base/counted.h"
#include "base/cpu.h"
#include "base/format.h"
#include "base/memory.h"
#include "base/process_memory.h"
#include "base/rope.h"
#include "winnow/error.h"

namespace winnow {
namespace {

TEST(Counted, one_thing_is_singular) {
  EXPECT_EQ(counted(0, "token"), "0 tokens");
  EXPECT_EQ(counted(1, "token"), "1 token");
  EXPECT_EQ(counted(21, "token"), "21 tokens");
  EXPECT_EQ(counted(1, "entry", "entries"), "1 entry");
  EXPECT_EQ(counted(2, "entry", "entries"), "2 entries");
}

#ifdef __linux__
TEST(Cpu, agrees_with_what_the_kernel_lists) {
  std::ifstream file("/proc/cpuinfo");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  if (text.find("flags") == std::string::npos) GTEST_SKIP() << "no x86 machine";
  const auto lists = [&text](const char* flag) { return text.find(flag) != std::string::npos; };
  EXPECT_EQ(multiplies_bf16(), lists(" avx512_bf16"));
  EXPECT_EQ(has_amx_bf16(), lists(" amx_bf16"));
}
#endif

TEST(Memory, counts_what_buffers_hold) {
  MemoryAccount whole;
  MemoryAccount part(&whole);
  {
    Buffer a(part, 1000, "a");
    Buffer b(whole, 500, "b");
    EXPECT_EQ(part.held(), 1000U);
    EXPECT_EQ(whole.held(), 1500U);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(a.data()) % 64, 0U);
    const Buffer moved = std::move(a);
    EXPECT_EQ(part.held(), 1000U);
  }
  EXPECT_EQ(part.held(), 0U);
  EXPECT_EQ(whole.held(), 0U);
  EXPECT_EQ(whole.peak(), 1500U);
}

TEST(Memory, of_large_buffers_goes_back_to_the_system_also_from_below_what_is_in_use) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer has its own malloc, which keeps what was freed";
#endif
  MemoryAccount account;
  constexpr std::size_t kSize = std::size_t{1} << 20U;
  { const Buffer large(account, 31 * kSize, "what makes malloc keep a heap from now on"); }
  std::vector<Buffer> buffers;
  std::vector<std::unique_ptr<std::string>> in_use;
  const auto before = resident_bytes();
  for (int i = 0; i < 200; ++i) {
    buffers.emplace_back(account, kSize, "a test");
    std::memset(buffers.back().data(), i, kSize);
    in_use.push_back(std::make_unique<std::string>(100, 'x'));
  }
  EXPECT_GE(resident_bytes(), before + 190 * kSize);
  buffers.clear();
  EXPECT_EQ(account.held(), 0);
  EXPECT_LE(resident_bytes(), before + 20 * kSize);
}

TEST(Memory, what_cannot_be_had_is_an_error_with_numbers) {
  MemoryAccount account;
  for (const std::size_t bytes : {std::size_t{1} << 50U, std::numeric_limits<std::size_t>::max()}) {
    try {
      const Buffer buffer(account, bytes, "a test");
      ADD_FAILURE();
    } catch (const MemoryError& error) {
      EXPECT_EQ(error.bytes(), bytes);
      EXPECT_NE(std::string(error.what()).find("a test"), std::string::npos);
      EXPECT_NE(std::string(error.what()).find("available"), std::string::npos);
    }
  }
  EXPECT_EQ(account.held(), 0U);
}

TEST(Format, bytes) {
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
  EXPECT_EQ(format_bytes(std::size_t{3} << 30U), "3.0 GiB");
  EXPECT_EQ(format_at_least(0), "0KiB");
  EXPECT_EQ(format_at_least(1024), "1KiB");
  EXPECT_EQ(format_at_least(1025), "2KiB");
}

class RopeTest : public testing::TestWithParam<Rope::Pairing> {
 protected:
  RopeTest() {
    rope_.pairing = GetParam();
    for (int i = 0; i < 16; ++i) rope_.frequency.push_back(static_cast<float>(std::pow(10000.0, -i / 16.0)));
    for (int i = 0; i < 40; ++i) {
      q_.push_back(std::sin(static_cast<float>(i)));
      k_.push_back(std::cos(static_cast<float>(3 * i)));
    }
  }
  std::vector<float> at(std::vector<float> head, std::int64_t position) const {
    rope_.shift(head.data(), position);
    return head;
  }
  static double dot(const std::vector<float>& a, const std::vector<float>& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * b[i];
    return sum;
  }
  /// For 40 products of numbers below 1.5, each rounded a few times in f32.
  static constexpr double kTolerance = 40 * 2 * 4 * 6e-8;

  Rope rope_;
  std::vector<float> q_;
  std::vector<float> k_;
};

TEST_P(RopeTest, only_distances_count) {
  for (const std::int64_t shift : {1, 100, 50000}) {
    EXPECT_NEAR(dot(at(q_, 30 + shift), at(k_, 10 + shift)), dot(at(q_, 30), at(k_, 10)),
                shift * 6e-8 * 40 + kTolerance);
  }
}

TEST_P(RopeTest, shifts_add_and_undo) {
  const auto there_and_back = at(at(q_, 1234), -1234);
  const auto in_two = at(at(q_, 100), 23);
  const auto at_once = at(q_, 123);
  for (std::size_t i = 0; i < q_.size(); ++i) {
    EXPECT_NEAR(there_and_back[i], q_[i], kTolerance);
    EXPECT_NEAR(in_two[i], at_once[i], kTolerance);
  }
  EXPECT_EQ(at_once[35], q_[35]);  // beyond the rotated dimensions
}

TEST_P(RopeTest, turns_the_first_pair_by_the_position) {
  auto head = q_;
  rope_.shift(head.data(), 1);
  const std::size_t partner = GetParam() == Rope::Pairing::adjacent ? 1 : 16;
  EXPECT_NEAR(head[0], q_[0] * std::cos(1.0) - q_[partner] * std::sin(1.0), 1e-6);
  EXPECT_NEAR(head[partner], q_[0] * std::sin(1.0) + q_[partner] * std::cos(1.0), 1e-6);
}

INSTANTIATE_TEST_SUITE_P(pairings, RopeTest, testing::Values(Rope::Pairing::adjacent, Rope::Pairing::halves));

}  // namespace
}  // namespace winnow
