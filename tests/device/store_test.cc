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
  int pairs = 0;  ///< that are turned; 0: none
  bool halves = false;
  int sign = 1;
  bool factors = false;
  int step = 1;  ///< distance between used rows of the source
};

constexpr int kEnd = 3000;  ///< bound of positions

/// Two runs of rows from one source: the first half is stored at given places, in reverse order; the second half
/// follows in order.
class Stored {
 public:
  explicit Stored(const Storing& what)
      : what_(what),
        source_(random_rows(random_, what.source, what.count * what.step, what.dim)),
        device_source_(source_.bytes),
        source_scales_(source_.scales),
        rotation_(what.pairs, what.halves, kEnd + 10),
        bytes_(z(what.count) * bytes_of(what.element, what.dim)),
        scales_(z(what.count) * z(padded(what.element, what.dim)) / 32),
        bad_(std::vector<std::int32_t>{0}) {
    for (int i = 0; i < what.count; ++i) {
      rows_.push_back((i * 7 + 3) % what.count + 5);
      to_rows_.push_back(i < half() ? half() - 1 - i : i);
      positions_.push_back(static_cast<std::int32_t>(random_() % kEnd));
      factors_.push_back(what.factors ? 0.5F + static_cast<float>(i % 3) : 1.0F);
    }
  }

  /// Runs the kernel; returns the stored values.
  std::vector<float> run() {
    const Array<std::int32_t> rows(rows_);
    const Array<std::int32_t> to_rows(to_rows_);
    const Array<std::int32_t> positions(positions_);
    const Array<float> factors(factors_);
    StoredRun run{.from = device_source_.address(),
                  .from_scales = source_scales_.address(),
                  .to = bytes_.address(),
                  .to_scales = scales_.address(),
                  .rows = rows.address(),
                  .to_rows = to_rows.address(),
                  .positions = what_.pairs > 0 ? positions.address() : nullptr,
                  .factors = what_.factors ? factors.address() : nullptr,
                  .count = half(),
                  .first_row = 5,
                  .from_step = what_.step,
                  .sign = what_.sign,
                  .shift = what_.pairs > 0 ? -9 : 0};
    std::vector<StoredRun> all{run};
    run.rows += half();
    run.to_rows = nullptr;
    run.to = bytes_.address() + z(half()) * bytes_of(what_.element, what_.dim);
    run.to_scales = scales_.address() + half() * padded(what_.element, what_.dim) / 32;
    if (what_.pairs > 0) run.positions += half();
    if (what_.factors) run.factors += half();
    run.count = what_.count - half();
    all.push_back(run);
    const Array<StoredRun> runs(all);
    const StoreTask task{.runs = runs.address(),
                         .angles = what_.pairs > 0 ? rotation_.angles() : Angles{},
                         .bad = bad_.address(),
                         .source = what_.source,
                         .element = what_.element,
                         .run_count = 2,
                         .most = what_.count - half(),
                         .dim = what_.dim};
    EXPECT_EQ(winnow_kernels()->store(task, nullptr), nullptr);
    return without_padding(what_.element, decoded(what_.element, bytes_.read(), scales_.read()), what_.dim);
  }

  /// The entry that was stored at a row.
  int entry_at(int row) const {
    return static_cast<int>(std::find(to_rows_.begin(), to_rows_.end(), row) - to_rows_.begin());
  }
  /// The source row of an entry.
  int source_row(int entry) const { return (rows_[z(entry)] - 5) * what_.step; }
  /// The expected row of an entry; only the turned result is rounded to f32.
  std::vector<float> row(int entry) const {
    const auto first = source_.values.begin() + std::ptrdiff_t{source_row(entry)} * what_.dim;
    std::vector<float> out(first, first + what_.dim);
    for (float& x : out) x *= factors_[z(entry)];
    if (what_.pairs == 0) return out;
    return rotation_.turned(out, std::int64_t{positions_[z(entry)]} * what_.sign + 9);
  }
  std::vector<std::uint8_t> bytes() const { return bytes_.read(); }
  const Rows& source() const { return source_; }

  bool is_bad() const { return bad_.read()[0] != 0; }

 private:
  int half() const { return what_.count / 2; }

  Storing what_;
  std::mt19937 random_{1};
  Rows source_;
  Array<std::uint8_t> device_source_;
  Array<std::uint16_t> source_scales_;
  Rotation rotation_;
  Array<std::uint8_t> bytes_;
  Array<std::uint16_t> scales_;
  Array<std::int32_t> bad_;
  std::vector<std::int32_t> rows_;
  std::vector<std::int32_t> to_rows_;
  std::vector<std::int32_t> positions_;
  std::vector<float> factors_;
};

/// Half a step of an element type, for a value in a block of 32 whose largest is `most`, plus the errors of f32 and of
/// the rounded scale.
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
    default:  // q4_0: nibbles end at 7, so one end is clipped by up to one step
      return most / 8 * (1 + 8 * 0x1p-11) + 1e-6 * most;
  }
}

/// f32 error of a turned row, relative to its largest element; angles are sums of two.
constexpr double kTurned = 4e-7;

class Store : public testing::TestWithParam<Storing> {};

TEST_P(Store, rows_are_the_nearest_that_their_element_has) {
  in_several_orders([] {
    const Storing& what = GetParam();
    Stored stored(what);
    const auto got = stored.run();
    EXPECT_FALSE(stored.is_bad());
    for (int i = 0; i < what.count; ++i) {
      const auto want = stored.row(stored.entry_at(i));
      double of_row = 0;
      for (const float x : want) of_row = std::max(of_row, std::abs(static_cast<double>(x)));
      for (int c = 0; c < what.dim; ++c) {
        const auto block = want.begin() + c / 32 * 32;
        double most = 0;
        for (auto x = block; x != block + std::min(32, what.dim - c / 32 * 32); ++x)
          most = std::max(most, std::abs(static_cast<double>(*x)));
        ASSERT_NEAR(got[z(i * what.dim + c)], want[z(c)], half_step(what.element, want[z(c)], most) + kTurned * of_row)
            << "row " << i << ", element " << c;
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(
    , Store,
    testing::Values(Storing{Element::f32, Element::f16, 64, 19}, Storing{Element::f32, Element::bf16, 80, 9, 40},
                    Storing{Element::f32, Element::q8_0, 96, 10, 32, true}, Storing{Element::f32, Element::q4_0, 64, 7},
                    Storing{Element::f16, Element::f16, 128, 5, 64, true, -1},
                    Storing{Element::bf16, Element::q8_0, 64, 300}, Storing{Element::f16, Element::q4_0, 256, 3, 128},
                    Storing{Element::f32, Element::f32, 72, 5, 32, true},
                    Storing{Element::q8_0, Element::bf16, 80, 6, 16, true, 1, true},
                    Storing{Element::q4_0, Element::f16, 96, 5, 48, false, -1, true},
                    Storing{Element::f32, Element::bf16, 64, 40, 0, false, 1, false, 3},
                    Storing{Element::q8_0, Element::q8_0, 80, 5, 40, true},
                    Storing{Element::q4_0, Element::q4_0, 64, 5, 0, false, 1, true}));

class Moved : public testing::TestWithParam<Storing> {};

TEST_P(Moved, rows_that_stay_as_they_are_keep_their_bits) {
  in_several_orders([] {
    const Storing& what = GetParam();
    Stored stored(what);
    EXPECT_EQ(stored.run().size(), z(what.count * what.dim));
    const auto bytes = stored.bytes();
    const std::size_t size = bytes_of(what.element, what.dim);
    for (int i = 0; i < what.count; ++i) {
      const int from = stored.source_row(stored.entry_at(i));
      ASSERT_EQ(std::memcmp(&bytes[z(i) * size], &stored.source().bytes[z(from) * size], size), 0) << "row " << i;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(, Moved,
                         testing::Values(Storing{Element::f32, Element::f32, 64, 9},
                                         Storing{Element::f16, Element::f16, 80, 9},
                                         Storing{Element::bf16, Element::bf16, 128, 40},
                                         Storing{Element::q8_0, Element::q8_0, 96, 9},
                                         Storing{Element::q4_0, Element::q4_0, 72, 9}));

/// Stores rows without turning.
void store_rows(const StoredRun& run, Element element, int dim, std::int32_t* bad = nullptr) {
  const Array<StoredRun> runs(std::vector<StoredRun>{run});
  StoreTask task{};
  task.runs = runs.address();
  task.bad = bad;
  task.source = Element::f32;
  task.element = element;
  task.run_count = 1;
  task.most = run.count;
  task.dim = dim;
  EXPECT_EQ(winnow_kernels()->store(task, nullptr), nullptr);
}

StoredRun one_row(const float* from, void* to, void* scales) {
  StoredRun run{};
  run.from = from;
  run.to = to;
  run.to_scales = scales;
  run.count = 1;
  return run;
}

/// A q8_0 block and a q4_0 block computed by hand.
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
    store_rows(one_row(source.address(), bytes.address(), scales.address()), element, 64);
    return bytes.read();
  };
  const auto q8 = store(Element::q8_0);
  EXPECT_EQ(static_cast<std::int8_t>(q8[0]), 127);
  EXPECT_EQ(static_cast<std::int8_t>(q8[1]), -127);  // halves round away from zero
  EXPECT_EQ(static_cast<std::int8_t>(q8[2]), 2);
  EXPECT_EQ(emulated::from_f16(scales.read()[0]), 1.0F);
  const auto q4 = store(Element::q4_0);
  EXPECT_EQ(emulated::from_f16(scales.read()[1]), 1.0F);
  EXPECT_EQ(q4[16] & 15, 0);        // element 32 is nibble 0 of its word
  EXPECT_EQ(q4[18] & 15, 15);       // element 33 is nibble 4; values above 7 become 7
  EXPECT_EQ(q4[16] >> 4 & 15, 11);  // element 34 is nibble 1
}

/// If two elements share the largest magnitude, the first one determines the scale, whichever lane holds it.
TEST(StoredRow, of_q4_0_has_the_scale_of_its_first_largest_element) {
  for (const float first : {4.0F, -4.0F}) {
    std::vector<float> row(32, 0.0F);
    row[5] = first;
    row[20] = -first;
    const Array<float> source(row);
    const Array<std::uint32_t> words(4);
    const Array<std::uint16_t> scales(2);
    store_rows(one_row(source.address(), words.address(), scales.address()), Element::q4_0, 32);
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
    store_rows(one_row(source.address(), to.address(), nullptr), Element::bf16, 64, flag.address());
    EXPECT_EQ(flag.read()[0], 1) << bad;
  }
}

}  // namespace
}  // namespace winnow::device::test
