// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "lanes.h"

namespace winnow::device::test {
namespace {

struct Storing {
  Element source = Element::f32;
  Element element = Element::f16;
  int dim = 64;
  int count = 1;
  bool turned = false;
  bool halves = false;
  int pairs = 0;
};

/// Rows, each of which goes to a place of its own: the last row first.
class Stored {
 public:
  explicit Stored(const Storing& what)
      : what_(what),
        source_(random_source(what, random_)),
        device_source_(source_.bytes),
        angles_(normal(random_, 3 * z(what.pairs) * 2)),
        device_angles_(angles_),
        bytes_(z(what.count) * bytes_of(what.element, what.dim)),
        scales_(z(what.count) * z(what.dim) / 32),
        bad_(std::vector<std::int32_t>{0}) {
    for (int i = 0; i < what.count; ++i) {
      const int to = what.count - 1 - i;
      rows_.push_back({.from = device_source_.address() + z(i) * bytes_of(what.source, what.dim),
                       .to = bytes_.address() + z(to) * bytes_of(what.element, what.dim),
                       .scales = is_quantized(what.element) ? scales_.address() + to * what.dim / 32 : nullptr,
                       .turn = what.turned ? i % 4 - 1 : -1});
    }
  }

  /// Values that are there afterwards, the first row first.
  std::vector<float> run() {
    const Array<StoredRow> rows(rows_);
    const StoreTask task{.rows = rows.address(),
                         .angles = device_angles_.address(),
                         .bad = bad_.address(),
                         .source = what_.source,
                         .element = what_.element,
                         .count = what_.count,
                         .dim = what_.dim,
                         .pairs = what_.pairs,
                         .halves = what_.halves ? 1 : 0};
    EXPECT_EQ(winnow_kernels()->store(task, nullptr), nullptr);
    const auto values = decoded(what_.element, bytes_.read(), scales_.read());
    std::vector<float> out;
    for (int i = what_.count - 1; i >= 0; --i) {
      const auto row = values.begin() + std::ptrdiff_t{i} * what_.dim;
      out.insert(out.end(), row, row + what_.dim);
    }
    return out;
  }

  /// The row, turned, in double precision.
  std::vector<double> row(int i) const {
    const auto first = source_.values.begin() + std::ptrdiff_t{i} * what_.dim;
    std::vector<double> out(first, first + what_.dim);
    const int turn = what_.turned ? i % 4 - 1 : -1;
    for (int pair = 0; turn >= 0 && pair < what_.pairs; ++pair) {
      double& x = out[z(what_.halves ? pair : 2 * pair)];
      double& y = out[z(what_.halves ? pair + what_.pairs : 2 * pair + 1)];
      const float* const angle = &angles_[z(turn * what_.pairs + pair) * 2];
      const double turned = x * angle[0] - y * angle[1];
      y = y * angle[0] + x * angle[1];
      x = turned;
    }
    return out;
  }

  bool is_bad() const { return bad_.read()[0] != 0; }

 private:
  static Rows random_source(const Storing& what, std::mt19937& random) {
    if (what.source != Element::f32) return random_rows(random, what.source, what.count, what.dim);
    Rows out;
    out.values = normal(random, z(what.count) * z(what.dim));
    out.bytes.resize(out.values.size() * 4);
    std::memcpy(out.bytes.data(), out.values.data(), out.bytes.size());
    return out;
  }

  Storing what_;
  std::mt19937 random_{1};
  Rows source_;
  Array<std::uint8_t> device_source_;
  std::vector<float> angles_;
  Array<float> device_angles_;
  Array<std::uint8_t> bytes_;
  Array<std::uint16_t> scales_;
  Array<std::int32_t> bad_;
  std::vector<StoredRow> rows_;
};

/// Half a step of an element for a value in a row of 32 whose largest is `most`, and what f32 and the scale's rounding
/// add to it.
double half_step(Element element, double value, double most) {
  switch (element) {
    case Element::f32:
      return 4e-7 * most;
    case Element::f16:
      return std::abs(value) * 0x1p-11 + 0x1p-25 + 4e-7 * most;
    case Element::bf16:
      return std::abs(value) * 0x1p-8 + 4e-7 * most;
    case Element::q8_0:
      return most / 127 * (0.5 + 127 * 0x1p-11) + 1e-6 * most;
    default:  // q4_0: its nibbles end at 7, so that the other end is cut off by up to one step
      return most / 8 * (1 + 8 * 0x1p-11) + 1e-6 * most;
  }
}

class Store : public testing::TestWithParam<Storing> {};

TEST_P(Store, rows_are_the_nearest_that_their_element_has) {
  in_several_orders([] {
    const Storing& what = GetParam();
    Stored stored(what);
    const auto got = stored.run();
    EXPECT_FALSE(stored.is_bad());
    for (int i = 0; i < what.count; ++i) {
      const auto want = stored.row(i);
      for (int c = 0; c < what.dim; ++c) {
        const auto block = want.begin() + c / 32 * 32;
        const auto end = block + std::min(32, what.dim - c / 32 * 32);
        double most = 0;
        for (auto x = block; x != end; ++x) most = std::max(most, std::abs(*x));
        ASSERT_NEAR(got[z(i * what.dim + c)], want[z(c)], half_step(what.element, want[z(c)], most))
            << "row " << i << ", element " << c;
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(, Store,
                         testing::Values(Storing{Element::f32, Element::f16, 64, 19},
                                         Storing{Element::f32, Element::bf16, 80, 9, true, false, 40},
                                         Storing{Element::f32, Element::q8_0, 96, 10, true, true, 32},
                                         Storing{Element::f32, Element::q4_0, 64, 7},
                                         Storing{Element::f16, Element::f16, 128, 5, true, true, 64},
                                         Storing{Element::bf16, Element::q8_0, 64, 4},
                                         Storing{Element::f16, Element::q4_0, 256, 3, true, false, 128},
                                         Storing{Element::f32, Element::f32, 72, 5, true, true, 36}));

/// A block of q8_0 and one of q4_0 that were computed by hand.
TEST(StoredRow, has_the_numbers_of_ggml) {
  std::vector<float> row(64, 0.0F);
  row[0] = 127;
  row[1] = -126.5F;
  row[2] = 2.49F;
  row[32] = -8;
  row[33] = 7.6F;
  row[34] = 3.4F;
  const Array<float> source(row);
  const Array<std::uint8_t> bytes(64);
  const Array<std::uint16_t> scales(2);
  const auto store = [&](Element element) {
    const Array<StoredRow> rows(std::vector<StoredRow>{
        {.from = source.address(), .to = bytes.address(), .scales = scales.address(), .turn = -1}});
    StoreTask task{};
    task.rows = rows.address();
    task.source = Element::f32;
    task.element = element;
    task.count = 1;
    task.dim = 64;
    EXPECT_EQ(winnow_kernels()->store(task, nullptr), nullptr);
    return bytes.read();
  };
  const auto q8 = store(Element::q8_0);
  EXPECT_EQ(static_cast<std::int8_t>(q8[0]), 127);
  EXPECT_EQ(static_cast<std::int8_t>(q8[1]), -127);  // halves away from zero
  EXPECT_EQ(static_cast<std::int8_t>(q8[2]), 2);
  EXPECT_EQ(emulated::from_f16(scales.read()[0]), 1.0F);
  const auto q4 = store(Element::q4_0);
  EXPECT_EQ(emulated::from_f16(scales.read()[1]), 1.0F);
  EXPECT_EQ(q4[16] & 15, 0);        // element 32 is nibble 0 of its word
  EXPECT_EQ(q4[18] & 15, 15);       // element 33 is nibble 4, and what is above 7 is 7
  EXPECT_EQ(q4[16] >> 4 & 15, 11);  // element 34 is nibble 1
}

/// Of two elements of the largest magnitude the first one gives the scale, whichever lane has it.
TEST(StoredRow, of_q4_0_has_the_scale_of_its_first_largest_element) {
  for (const float first : {4.0F, -4.0F}) {
    std::vector<float> row(32, 0.0F);
    row[5] = first;
    row[20] = -first;
    const Array<float> source(row);
    const Array<std::uint32_t> words(4);
    const Array<std::uint16_t> scales(2);
    const Array<StoredRow> rows(std::vector<StoredRow>{
        {.from = source.address(), .to = words.address(), .scales = scales.address(), .turn = -1}});
    StoreTask task{};
    task.rows = rows.address();
    task.source = Element::f32;
    task.element = Element::q4_0;
    task.count = 1;
    task.dim = 32;
    EXPECT_EQ(winnow_kernels()->store(task, nullptr), nullptr);
    EXPECT_EQ(emulated::from_f16(scales.read()[0]), first / -8);
  }
}

TEST(StoredRow, that_is_not_finite_is_told) {
  for (const float bad : {std::nanf(""), INFINITY, -INFINITY}) {
    std::vector<float> row(64, 1.0F);
    row[63] = bad;
    const Array<float> source(row);
    const Array<std::uint16_t> to(64);
    const Array<std::int32_t> flag(std::vector<std::int32_t>{0});
    const Array<StoredRow> rows(
        std::vector<StoredRow>{{.from = source.address(), .to = to.address(), .scales = nullptr, .turn = -1}});
    StoreTask task{};
    task.rows = rows.address();
    task.bad = flag.address();
    task.source = Element::f32;
    task.element = Element::bf16;
    task.count = 1;
    task.dim = 64;
    EXPECT_EQ(winnow_kernels()->store(task, nullptr), nullptr);
    EXPECT_EQ(flag.read()[0], 1) << bad;
  }
}

}  // namespace
}  // namespace winnow::device::test
