// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <random>

#include "fixture.h"

namespace winnow::attention {
namespace {

constexpr ElementType kTypes[] = {ElementType::f32, ElementType::f16, ElementType::bf16, ElementType::q8_0,
                                  ElementType::q4_0};

/// Encoded rows that own their memory.
struct Lane {
  Lane(int d, int n, ElementType key_type, ElementType value_type, unsigned seed)
      : keys(encode(key_type, d, noise(z(n) * z(d), seed))),
        values(encode(value_type, d, noise(z(n) * z(d), seed + 1))) {
    run.keys = {keys.data(), cache::row_bytes(key_type, d), n, d, key_type};
    run.values = {values.data(), cache::row_bytes(value_type, d), n, d, value_type};
  }

  static std::vector<std::byte> encode(ElementType type, int d, const std::vector<float>& rows) {
    const std::size_t bytes = cache::row_bytes(type, d);
    std::vector<std::byte> out(rows.size() / z(d) * bytes);
    for (std::size_t i = 0; i * z(d) < rows.size(); ++i) {
      cache::encode_row(type, std::span(rows).subspan(i * z(d), z(d)), out.data() + i * bytes);
    }
    return out;
  }

  std::vector<std::byte> keys;
  std::vector<std::byte> values;
  cache::LaneRun run;
};

/// One step with any reads; returns the output [rows][H_q][d].
std::vector<float> decode(const Shape& shape, const Rope& rope, std::span<const DecodeRead> reads,
                          const std::vector<float>& q, int rows, int threads) {
  MemoryAccount account;
  std::vector<float> out(q.size(), std::nanf(""));
  cpu::Decode attention(account, threads);
  attention.begin(shape, rope, reads, q.data(), out.data(), rows);
  on_team(threads, [&](Worker w) { attention.run(w); });
  on_team(threads, [&](Worker w) { attention.merge(w); });
  return out;
}

/// Rows of a run's entries: the rows themselves, or the centres' rows of merged entries times their scales.
std::vector<float> of_entries(const cache::LaneRun& run, const std::vector<float>& rows, const float* scales) {
  if (run.centres == nullptr) return rows;
  const std::size_t d = z(run.keys.dim);
  std::vector<float> out;
  for (int i = 0; i < run.merged_entries; ++i) {
    const auto row = std::span(rows).subspan(z(run.centres[i] - run.first_slot) * d, d);
    for (const float x : row) out.push_back(scales == nullptr ? x : x * scales[i]);
  }
  return out;
}

/// Keys as a query at position 0 sees them, and values.
struct Entries {
  std::vector<float> keys;
  std::vector<float> values;
};

/// All entries that queries of `row` read from one KV head, over all runs.
Entries entries_of(const Shape& shape, const Rope& rope, std::span<const DecodeRead> reads, int row, int kv_head) {
  const std::size_t d = z(shape.head_dim);
  Entries out;
  for (const auto& read : reads) {
    if (read.row != row || read.kv_head != kv_head) continue;
    auto k = of_entries(read.run, decoded(read.run.keys, 0, read.run.keys.count), read.run.scales);
    for (std::size_t i = 0; read.run.rotate_to != nullptr && i < k.size(); i += d) {
      const auto there = reference::rotated(std::span(k).subspan(i, d), rope.frequency,
                                            rope.pairing == Rope::Pairing::adjacent, read.run.rotate_to[i / d]);
      std::copy(there.begin(), there.end(), k.begin() + static_cast<std::ptrdiff_t>(i));
    }
    const auto v = of_entries(read.run, decoded(read.run.values, 0, read.run.values.count), nullptr);
    // Turning the query forward equals turning the keys back; that way one query serves all runs.
    if (read.run.query_shift != 0) {
      for (std::size_t i = 0; i < k.size(); i += d) {
        const bool adjacent = rope.pairing == Rope::Pairing::adjacent;
        const auto back =
            reference::rotated(std::span(k).subspan(i, d), rope.frequency, adjacent, -read.run.query_shift);
        std::copy(back.begin(), back.end(), k.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
    out.keys.insert(out.keys.end(), k.begin(), k.end());
    out.values.insert(out.values.end(), v.begin(), v.end());
  }
  return out;
}

/// Results of every row and head.
std::vector<reference::Result> expected(const Shape& shape, const Rope& rope, std::span<const DecodeRead> reads,
                                        const std::vector<float>& q, int rows) {
  const std::size_t d = z(shape.head_dim);
  std::vector<reference::Result> out;
  for (int row = 0; row < rows; ++row) {
    for (int kv_head = 0; kv_head < shape.kv_heads; ++kv_head) {
      const auto entries = entries_of(shape, rope, reads, row, kv_head);
      for (int i = 0; i < shape.group(); ++i) {
        const auto query = std::span(q).subspan(out.size() * d, d);
        out.push_back(
            reference::attend(query, entries.keys, entries.values, logits_of(shape, kv_head * shape.group() + i)));
      }
    }
  }
  return out;
}

void check(const Shape& shape, const Rope& rope, std::span<const DecodeRead> reads, const std::vector<float>& q,
           int rows, double slack = 1) {
  const std::size_t d = z(shape.head_dim);
  auto want = expected(shape, rope, reads, q, rows);
  for (auto& one : want) {
    for (double& e : one.out_error) e *= slack;
  }
  on_every_target([&] {
    const auto out = decode(shape, rope, reads, q, rows, 1);
    for (std::size_t i = 0; i < want.size(); ++i) {
      expect_close(std::span(out).subspan(i * d, d), want[i].out, want[i].out_error,
                   "row and head " + std::to_string(i));
      if (testing::Test::HasFatalFailure()) return;
    }
  });
}

struct Case {
  int d;
  int group;
  int n;
  ElementType key;
  ElementType value;
  friend void PrintTo(const Case& c, std::ostream* os) {
    *os << "d " << c.d << ", G " << c.group << ", n " << c.n << ", " << name_of(c.key) << "/" << name_of(c.value);
  }
};

/// Every dimension with every group size and length; the 25 pairs of types rotate through these cases.
std::vector<Case> cases() {
  std::vector<Case> out;
  for (const int d : {64, 80, 96, 128, 256, 512}) {
    for (const int group : {1, 3, 7, 8}) {
      for (const int n : {1, 63, 64, 65, 257, 4097}) {
        const std::size_t rotation = out.size() * 7 % 25;
        out.push_back({d, group, n, kTypes[rotation / 5], kTypes[rotation % 5]});
      }
    }
  }
  return out;
}

class DecodeShapes : public testing::TestWithParam<Case> {};

TEST_P(DecodeShapes, agrees_with_double_precision) {
  const Case& c = GetParam();
  const Shape shape = shape_of(1, c.group, c.d);
  const Lane lane(c.d, c.n, c.key, c.value, 1);
  const DecodeRead read{0, 0, lane.run};
  check(shape, {}, {&read, 1}, noise(z(c.group) * z(c.d), 9), 1);
}

INSTANTIATE_TEST_SUITE_P(all, DecodeShapes, testing::ValuesIn(cases()));

/// Five sequences of different lengths over two KV heads: one reads nothing, one nothing from its second head, one has
/// three runs.
struct Batch {
  Batch() {
    const auto add = [&](int row, int head, int n, ElementType type) {
      lanes.emplace_back(80, n, type, type, static_cast<unsigned>(lanes.size() * 2));
      reads.push_back({row, head, lanes.back().run});
    };
    lanes.reserve(16);
    add(0, 0, 700, ElementType::f16);
    add(0, 1, 30, ElementType::q8_0);
    add(1, 0, 1, ElementType::f32);
    add(1, 1, 513, ElementType::bf16);
    add(3, 0, 64, ElementType::f16);
    add(3, 0, 300, ElementType::q4_0);
    add(3, 0, 5, ElementType::f16);
    add(3, 1, 0, ElementType::f16);
    add(3, 1, 256, ElementType::f16);
    add(4, 0, 2000, ElementType::f16);
  }
  static constexpr int kRows = 5;
  Shape shape = shape_of(2, 3, 80);
  std::vector<Lane> lanes;
  std::vector<DecodeRead> reads;
  std::vector<float> q = noise(kRows * 6 * 80, 77);
};

TEST(Decode, ragged_batch_agrees_with_double_precision) {
  const Batch batch;
  check(batch.shape, {}, batch.reads, batch.q, Batch::kRows);
}

TEST(Decode, soft_caps_and_sinks_agree_with_double_precision) {
  Batch batch;
  for (const auto& caps : kCaps) {
    SCOPED_TRACE(testing::Message() << "cap " << caps.cap << ", sinks around " << caps.sink);
    const auto sinks = set_caps(caps, batch.shape);
    check(batch.shape, {}, batch.reads, batch.q, Batch::kRows);
  }
}

TEST(Decode, threads_do_not_change_a_bit) {
  const Batch batch;
  on_every_target([&] {
    const auto one = decode(batch.shape, {}, batch.reads, batch.q, Batch::kRows, 1);
    for (const int threads : {2, 3})
      EXPECT_EQ(decode(batch.shape, {}, batch.reads, batch.q, Batch::kRows, threads), one);
  });
}

TEST(Decode, neighbours_in_the_batch_do_not_change_a_bit) {
  const Batch batch;
  const std::size_t row = 6 * 80;
  on_every_target([&] {
    const auto all = decode(batch.shape, {}, batch.reads, batch.q, Batch::kRows, 1);
    for (int r = 0; r < Batch::kRows; ++r) {
      std::vector<DecodeRead> own;
      for (const auto& read : batch.reads) {
        if (read.row == r) own.push_back({0, read.kv_head, read.run});
      }
      const auto from = batch.q.begin() + static_cast<std::ptrdiff_t>(z(r) * row);
      const auto alone = decode(batch.shape, {}, own, {from, from + row}, 1, 1);
      EXPECT_TRUE(std::equal(alone.begin(), alone.end(), all.begin() + static_cast<std::ptrdiff_t>(z(r) * row)))
          << "row " << r;
    }
  });
}

TEST(Decode, nothing_to_read_gives_zeros) {
  const Shape shape = shape_of(2, 3, 64);
  on_every_target([&] {
    EXPECT_EQ(decode(shape, {}, {}, noise(3 * 6 * 64, 1), 3, 2), std::vector<float>(3 * 6 * 64, 0.0F));
    EXPECT_TRUE(decode(shape, {}, {}, {}, 0, 2).empty());
    Shape with_sinks = shape;
    const auto sinks = set_caps({0, -150}, with_sinks);
    EXPECT_EQ(decode(with_sinks, {}, {}, noise(3 * 6 * 64, 1), 3, 2), std::vector<float>(3 * 6 * 64, 0.0F));
  });
}

TEST(Decode, everything_masked_gives_zeros) {
  const Shape shape = shape_of(1, 3, 64);
  Lane lane(64, 300, ElementType::f32, ElementType::f32, 1);
  for (std::size_t i = 0; i < lane.keys.size(); i += 64 * sizeof(float)) {
    *reinterpret_cast<float*>(lane.keys.data() + i) = -std::numeric_limits<float>::infinity();
  }
  std::vector<float> q = noise(3 * 64, 2);
  for (std::size_t i = 0; i < q.size(); i += 64) q[i] = 1;
  const DecodeRead read{0, 0, lane.run};
  on_every_target([&] { EXPECT_EQ(decode(shape, {}, {&read, 1}, q, 1, 1), std::vector<float>(3 * 64, 0.0F)); });
}

TEST(Decode, one_overwhelming_logit_takes_its_value) {
  const Shape shape = shape_of(1, 1, 64);
  Lane lane(64, 600, ElementType::f32, ElementType::f32, 1);
  auto* const keys = reinterpret_cast<float*>(lane.keys.data());
  std::fill_n(keys, 600 * 64, 0.0F);
  for (int j = 0; j < 600; ++j) keys[j * 64] = 1e15F * (j == 411 ? 1.0F : -0.01F * static_cast<float>(j % 100));
  std::vector<float> q(64, 0.0F);
  q[0] = 1e15F;
  const DecodeRead read{0, 0, lane.run};
  const auto* const values = reinterpret_cast<const float*>(lane.values.data());
  on_every_target([&] {
    EXPECT_EQ(decode(shape, {}, {&read, 1}, q, 1, 1), std::vector<float>(values + 411 * 64, values + 412 * 64));
  });
}

TEST(Decode, rotated_queries_read_keys_of_another_frame) {
  for (const Rope::Pairing pairing : {Rope::Pairing::adjacent, Rope::Pairing::halves}) {
    Rope rope;
    rope.pairing = pairing;
    for (int i = 0; i < 24; ++i)
      rope.frequency.push_back(std::pow(10000.0F, -static_cast<float>(i) / 24));  // 48 of 64 elements
    const Shape shape = shape_of(1, 3, 64);
    const Lane first(64, 100, ElementType::f16, ElementType::f16, 1);
    const Lane second(64, 400, ElementType::q8_0, ElementType::f16, 3);
    std::vector<DecodeRead> reads = {{0, 0, first.run}, {0, 0, second.run}};
    reads[1].run.query_shift = -12345;
    // Turning costs a sine, a cosine, two products and a sum on each side: 5 roundings more than the d + 2 of the
    // bound. Elements grow by at most sqrt(2). Twice the bound covers both.
    check(shape, rope, reads, noise(3 * 64, 9), 1, 2);
  }
}

TEST(Decode, keys_are_rotated_to_their_places) {
  for (const auto pairing : {Rope::Pairing::adjacent, Rope::Pairing::halves}) {
    for (const auto type : kTypes) {
      Rope rope;
      rope.pairing = pairing;
      for (int i = 0; i < 24; ++i)
        rope.frequency.push_back(std::pow(10000.0F, -static_cast<float>(i) / 24));  // 48 of 64 elements
      const Lane lane(64, 300, type, ElementType::f16, 1);
      std::vector<std::int32_t> rotate_to;
      for (int j = 0; j < 300; ++j) rotate_to.push_back(j * 7 % 300);
      DecodeRead read{0, 0, lane.run};
      read.run.rotate_to = rotate_to.data();
      read.run.rotate_to_end = 300;
      read.run.query_shift = -555;
      check(shape_of(1, 3, 64), rope, {&read, 1}, noise(3 * 64, 9), 1, 2);  // twice the bound: see TurnedQueries
    }
  }
}

/// Merged entries of 400 rows: some rows have none, one has more than fit into a stretch, and some rows that have
/// entries are more than a stretch apart.
struct Followed {
  enum class Rows : std::uint8_t { as_they_are, rotated };

  Followed() {
    std::mt19937 random(5);
    for (int slot = 0; slot < 400; ++slot) {
      row_rotations.push_back(slot * 7 % 800);
      const int count = slot == 50 ? 300 : slot > 80 && slot < 380 ? 0 : static_cast<int>(random() % 4);
      for (int i = 0; i < count; ++i) {
        centres.push_back(1000 + slot);
        scales.push_back(static_cast<float>(random() % 1000) / 500);
        rotate_to.push_back(static_cast<std::int32_t>(random() % 900));
      }
    }
  }
  cache::LaneRun run(cache::LaneRun rows, int first) const {
    rows.first_slot = 1000;
    rows.first = first;
    rows.centres = centres.data();
    rows.scales = scales.data();
    rows.rotate_to = rotate_to.data();
    rows.rotate_to_end = 900;
    rows.merged_entries = static_cast<int>(centres.size());
    return rows;
  }

  /// Rows and their merged entries as a lane returns them; if the rows are rotated too, attention reads both in one
  /// run.
  std::vector<DecodeRead> reads(const cache::LaneRun& rows, Rows are) const {
    std::vector<DecodeRead> out = {{0, 0, rows}, {0, 0, run(rows, 400)}};
    if (are == Rows::rotated) out[0].run.rotate_to = row_rotations.data();
    out[0].run.rotate_to_end = 900;
    return out;
  }

  std::vector<std::int32_t> centres;
  std::vector<float> scales;
  std::vector<std::int32_t> rotate_to;
  std::vector<std::int32_t> row_rotations;
};

TEST(Decode, merged_entries_read_their_centres_rows) {
  const Followed followed;
  for (const auto type : kTypes) {
    Rope rope;
    for (int i = 0; i < 40; ++i) rope.frequency.push_back(std::pow(10000.0F, -static_cast<float>(i) / 40));
    const Lane lane(80, 400, type, ElementType::f16, 1);
    for (const auto are : {Followed::Rows::as_they_are, Followed::Rows::rotated}) {
      // Twice the bound: see TurnedQueries; the scale is one rounding.
      check(shape_of(1, 5, 80), rope, followed.reads(lane.run, are), noise(5 * 80, 9), 1, 2);
      Shape capped = shape_of(1, 5, 80);
      const auto sinks = set_caps({1.5F, 3}, capped);
      check(capped, rope, followed.reads(lane.run, are), noise(5 * 80, 9), 1, 2);
    }
  }
}

void check_probabilities(const Followed& followed, Followed::Rows are) {
  Rope rope;
  for (int i = 0; i < 32; ++i) rope.frequency.push_back(std::pow(10000.0F, -static_cast<float>(i) / 32));
  const Shape shape = shape_of(1, 3, 64);
  const Lane lane(64, 400, ElementType::f16, ElementType::q8_0, 1);
  const auto q = noise(3 * 64, 2);
  const int entries = 400 + static_cast<int>(followed.centres.size());
  std::vector<float> got;
  auto reads = followed.reads(lane.run, are);
  auto want = expected(shape, rope, reads, q, 1);
  for (auto& one : want) {
    for (double& e : one.weight_error) e *= 2;
  }
  on_every_target([&] {
    got.assign(3 * z(entries), 12345.0F);
    for (auto& read : reads) {
      read.probabilities = got.data() + read.run.first;
      read.probabilities_stride = entries;
    }
    decode(shape, rope, reads, q, 1, 2);
    for (int g = 0; g < 3; ++g) {
      expect_close(std::span<const float>(got).subspan(z(g * entries), z(entries)), want[z(g)].weight,
                   want[z(g)].weight_error, "head " + std::to_string(g));
    }
  });
}

TEST(Decode, probabilities_of_merged_entries_agree_with_double_precision) {
  check_probabilities(Followed(), Followed::Rows::as_they_are);
  check_probabilities(Followed(), Followed::Rows::rotated);
}

void check_probabilities(const Shape& shape) {
  const Lane first(80, 37, ElementType::q8_0, ElementType::f16, 1);
  const Lane second(80, 563, ElementType::f16, ElementType::f16, 3);  // several stretches
  const auto q = noise(9 * 80, 2);
  constexpr int kStride = 610;
  std::vector<float> got;
  std::vector<DecodeRead> reads = {{0, 0, first.run}, {0, 0, second.run}};
  const auto want = expected(shape, {}, reads, q, 1);
  on_every_target([&] {
    got.assign(9 * kStride, 12345.0F);
    reads[0].probabilities = got.data();
    reads[1].probabilities = got.data() + 37;
    reads[0].probabilities_stride = reads[1].probabilities_stride = kStride;
    decode(shape, {}, reads, q, 1, 2);
    for (int g = 0; g < 9; ++g) {
      expect_close(std::span<const float>(got).subspan(z(g * kStride), 600), want[z(g)].weight, want[z(g)].weight_error,
                   "head " + std::to_string(g));
      for (int j = 600; j < kStride; ++j) ASSERT_EQ(got[g * kStride + j], 12345.0F) << "beyond the runs";
    }
  });
}

TEST(Decode, probabilities_agree_with_double_precision) {
  Shape shape = shape_of(1, 9, 80);  // more heads than one pass over a stretch serves
  check_probabilities(shape);
  for (const auto& caps : kCaps) {
    SCOPED_TRACE(testing::Message() << "cap " << caps.cap << ", sinks around " << caps.sink);
    const auto sinks = set_caps(caps, shape);
    check_probabilities(shape);
  }
}

TEST(Decode, memory_is_counted_and_given_back) {
  MemoryAccount account;
  {
    const Batch batch;
    const Rope rope;
    cpu::Decode attention(account, 2);
    std::vector<float> out(batch.q.size());
    attention.begin(batch.shape, rope, batch.reads, batch.q.data(), out.data(), Batch::kRows);
    EXPECT_GT(account.held(), 0U);
  }
  EXPECT_EQ(account.held(), 0U);
}

}  // namespace
}  // namespace winnow::attention
