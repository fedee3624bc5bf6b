// SPDX-License-Identifier: Apache-2.0
// Attention of decode steps by a device's kernels, which the emulator runs over memory that is locked to everybody
// else, compared with the CPU's over the same lanes.
#include <cstdlib>
#include <deque>

#include "attention/device/decode.h"
#include "cache/growing_lanes.h"
#include "fixture.h"
#include "support/host_device.h"

namespace winnow::attention {
namespace {

constexpr int kHeads = 2;
constexpr int kGroup = 3;

/// Kernels split factors in two; a rest of 2^-16 remains with bf16 and f32. Values of quantized rows are rounded to
/// f16.
float tolerance(const KvType& type) {
  const auto is_quantized = [](ElementType e) { return e == ElementType::q8_0 || e == ElementType::q4_0; };
  return is_quantized(type.key) || is_quantized(type.value) ? 4e-3F : 4e-4F;
}

Rope rope_of(int pairs, Rope::Pairing pairing = Rope::Pairing::halves) {
  Rope rope;
  rope.pairing = pairing;
  for (int i = 0; i < pairs; ++i)
    rope.frequency.push_back(std::pow(10000.0F, -static_cast<float>(i) / static_cast<float>(pairs)));
  return rope;
}

/// Lanes of a text, from which each head keeps other entries.
class Text {
 public:
  Text(const cache::LaneShape& shape, int tokens, unsigned seed) : random_(seed), lanes_(account_, shape) {
    cache::LayerScratch scratch(account_, ElementType::f32, shape.kv_heads, shape.head_dim, tokens);
    cache::KeepPlan plan;
    plan.heads.resize(z(shape.kv_heads));
    for (int row = 0; row < tokens; ++row) {
      scratch.extend(std::vector<std::int32_t>{row});
      scratch.store(row, rows(shape.kv_heads).data(), rows(shape.kv_heads).data());
      for (int head = 0; head < shape.kv_heads; ++head) {
        if (random_() % 4U >= z(head)) plan.heads[z(head)].push_back(row);
      }
    }
    lanes_.commit(plan, scratch);
    end_ = tokens;
  }

  cache::GrowingLanes& lanes() { return lanes_; }
  std::vector<float> rows(int count) { return noise(z(count) * z(lanes_.shape().head_dim), ++seed_); }

  void append(int count) {
    for (int i = 0; i < count; ++i, ++end_) {
      lanes_.reserve(1);
      for (int head = 0; head < lanes_.shape().kv_heads; ++head) lanes_.append(head, end_, rows(1), rows(1));
    }
  }

  int random_slot(int head) { return static_cast<int>(random_() % static_cast<unsigned>(lanes_.length(head))); }
  std::int32_t end() const { return end_; }

 private:
  MemoryAccount account_;
  std::mt19937 random_;
  unsigned seed_ = 1;
  cache::GrowingLanes lanes_;
  std::int32_t end_ = 0;
};

/// Output and probabilities of a step.
struct Results {
  std::vector<float> out;            ///< [rows][H_q][d]
  std::vector<float> probabilities;  ///< [rows][H_q][stride]
};

const Rope kNoRope;

/// Ranges of the lanes that each row reads.
struct Reading {
  Shape shape;
  const Rope& rope;
  std::vector<cache::GrowingLanes*> lanes;  ///< of each row
  std::vector<cache::AttendRange> ranges;   ///< empty: all entries
  bool probabilities = true;

  int rows() const { return static_cast<int>(lanes.size()); }
  int stride() const {
    int most = 0;
    for (const auto* one : lanes) {
      for (int head = 0; head < shape.kv_heads; ++head) most = std::max(most, one->entries(head) + 1);
    }
    return most;
  }
};

Results step(DecodeAttention& attention, const Reading& reading) {
  const auto queries = z(reading.rows()) * z(reading.shape.query_heads);
  const int stride = reading.stride();
  const auto q = noise(queries * z(reading.shape.head_dim), 11);
  Results r{std::vector<float>(q.size(), std::nanf("")), std::vector<float>(queries * z(stride), -1)};
  std::vector<DecodeRead> reads;
  for (int row = 0; row < reading.rows(); ++row) {
    for (int head = 0; head < reading.shape.kv_heads; ++head) {
      const auto& lanes = *reading.lanes[z(row)];
      auto ranges = reading.ranges;
      if (ranges.empty()) ranges.push_back({0, lanes.length(head), 0});
      std::vector<cache::LaneRun> runs;
      for (const auto& range : ranges) lanes.runs(head, range, runs);
      for (const auto& run : runs) {
        DecodeRead read{row, head, run};
        if (reading.probabilities) {
          const auto first = z(row * reading.shape.query_heads + head * reading.shape.group()) * z(stride);
          read.probabilities = r.probabilities.data() + first + z(run.first);
          read.probabilities_stride = stride;
        }
        reads.push_back(read);
      }
    }
  }
  attention.begin(reading.shape, reading.rope, reads, q.data(), r.out.data(), reading.rows());
  on_team(2, [&](Worker w) { attention.run(w); });
  on_team(2, [&](Worker w) { attention.merge(w); });
  return r;
}

void expect_near(std::span<const float> got, std::span<const float> want, float error, const char* what) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_TRUE(std::abs(got[i] - want[i]) <= error) << what << " " << i << ": " << got[i] << ", not " << want[i];
}

class DeviceDecode : public testing::Test {
 protected:
  void expect_the_same(const Reading& reading) {
    const auto before = test::traffic().kernels;
    expect_near_the_cpu(reading);
    if (std::getenv("WINNOW_TEST_DEVICE") != nullptr) return;  // only host devices count
    EXPECT_GT(test::traffic().kernels, before);
  }

  void expect_near_the_cpu(const Reading& reading) {
    cpu::Decode cpu(account_, 2);
    const auto want = step(cpu, reading);
    const auto got = step(attention_, reading);
    const float error = tolerance(reading.lanes.front()->shape().type);
    expect_near(got.out, want.out, error, "output");
    expect_near(got.probabilities, want.probabilities, error, "probability");
  }

  const Rope& keep(Rope rope) { return ropes_.emplace_back(std::move(rope)); }

  MemoryAccount account_;
  std::deque<Rope> ropes_;  ///< outlive the attention
  std::shared_ptr<winnow::device::Device> device_ = test::tested_device_with_kernels();
  device::Decode attention_{*device_, account_, std::make_unique<cpu::Decode>(account_, 2)};
};

TEST_F(DeviceDecode, agrees_with_the_cpu_for_all_types_while_lanes_change) {
  for (const char* const type : {"f32", "f16", "bf16", "q8_0", "q4_0", "q8_0/q4_0", "q8_0/f16"}) {
    SCOPED_TRACE(type);
    Text text({kHeads, 40, KvType::parse(type)}, 300, 3);
    auto& lanes = text.lanes();
    const Reading reading{shape_of(kHeads, kGroup, 40), kNoRope, {&lanes}, {}};
    expect_the_same(reading);
    text.append(3);
    expect_the_same(reading);
    text.append(300);  // beyond a tail block of the copy
    expect_the_same(reading);
    for (int i = 0; i < 20; ++i) {
      for (int head = 0; head < kHeads; ++head) lanes.remove(head, text.random_slot(head));
    }
    expect_the_same(reading);
    lanes.replace(1, text.random_slot(1), text.end(), text.rows(1), text.rows(1));
    lanes.overwrite(0, text.random_slot(0), text.rows(1), text.rows(1));
    const int slots[] = {0, lanes.length(0) - 1};
    lanes.add_to_values(0, slots, text.rows(1));
    expect_the_same(reading);
    text.append(40);
    expect_the_same(reading);
  }
}

TEST_F(DeviceDecode, reads_parts_of_lanes_with_windows_caps_and_sinks) {
  Text text({kHeads, 64, KvType::parse("f16")}, 200, 5);
  text.append(50);
  for (const auto& caps : kCaps) {
    Reading reading{shape_of(kHeads, kGroup, 64), kNoRope, {&text.lanes()}, {{0, 4, 0}, {20, 90, 0}, {100, 170, 0}}};
    const auto sinks = set_caps(caps, reading.shape);
    expect_the_same(reading);
  }
}

TEST_F(DeviceDecode, has_several_sequences_and_several_rows_of_one) {
  const cache::LaneShape shape{kHeads, 64, KvType::parse("bf16")};
  Text one(shape, 100, 1);
  Text other(shape, 350, 2);
  Text empty(shape, 0, 3);
  Reading reading{
      shape_of(kHeads, kGroup, 64), kNoRope, {&one.lanes(), &other.lanes(), &other.lanes(), &empty.lanes()}, {}};
  for (int i = 0; i < 3; ++i) {
    expect_the_same(reading);
    other.append(2);
    empty.append(1);
    reading.probabilities = !reading.probabilities;
  }
}

TEST_F(DeviceDecode, rotates_keys_to_ranks_and_queries_by_a_shift) {
  for (const auto pairing : {Rope::Pairing::adjacent, Rope::Pairing::halves}) {
    for (const auto positions : {cache::EffectivePositions::cache, cache::EffectivePositions::absolute}) {
      const Rope& rope = keep(rope_of(24, pairing));  // 48 of 64 elements
      Text text({kHeads, 64, KvType::parse("f16"), 0, &rope, positions}, 300, 7);
      Reading reading{shape_of(kHeads, kGroup, 64), rope, {&text.lanes()}, {}};
      text.append(40);
      for (int i = 0; i < 10; ++i) {
        text.lanes().remove(0, text.random_slot(0));
        text.lanes().remove(1, text.random_slot(1));
        text.append(1);
        reading.ranges = {{0, text.lanes().length(1), -500}};
        reading.ranges.front().end = std::min(text.lanes().length(0), text.lanes().length(1));
        expect_the_same(reading);
      }
    }
  }
}

TEST_F(DeviceDecode, reads_merged_entries) {
  const auto rope = rope_of(32);
  cache::LaneShape shape{kHeads, 64, KvType::parse("q8_0"), 0, &rope};
  shape.merged_entries = 1;
  Text text(shape, 300, 9);
  auto& lanes = text.lanes();
  const Reading reading{shape_of(kHeads, kGroup, 64), rope, {&lanes}, {}};
  for (int head = 0; head < kHeads; ++head) lanes.unrotate(head);
  lanes.reserve_merged_entries(120);
  for (int i = 0; i < 120; ++i) {
    for (int head = 0; head < kHeads; ++head) {
      const int slot = text.random_slot(head);
      const int centre = text.random_slot(head);
      const int last = lanes.length(head) - 1;
      if (slot != centre && centre != last) lanes.merge_into(head, slot, centre, 0.8F);
    }
    if (i % 40 == 0) expect_the_same(reading);
  }
  expect_the_same(reading);
}

TEST_F(DeviceDecode, leaves_to_the_cpu_what_kernels_lack) {
  const auto rope = rope_of(20);  // no multiple of 16 elements
  Text rotated({kHeads, 64, KvType::parse("f16"), 0, &rope}, 100, 1);
  rotated.lanes().unrotate(0);
  Text mixed({kHeads, 64, KvType::parse("f16/f32")}, 100, 1);
  Text odd({kHeads, 36, KvType::parse("f16")}, 100, 1);
  expect_near_the_cpu({shape_of(kHeads, kGroup, 64), rope, {&rotated.lanes()}, {}});
  expect_near_the_cpu({shape_of(kHeads, kGroup, 64), kNoRope, {&mixed.lanes()}, {}});
  expect_near_the_cpu({shape_of(kHeads, kGroup, 36), kNoRope, {&odd.lanes()}, {}});
  EXPECT_EQ(device_->account().peak(), 0U);
}

TEST_F(DeviceDecode, copies_many_changes_at_once_and_makes_freed_copies_again) {
  Text text({kHeads, 64, KvType::parse("q4_0")}, 100, 1);
  const Reading reading{shape_of(kHeads, kGroup, 64), kNoRope, {&text.lanes()}, {}};
  expect_the_same(reading);
  text.append(900);  // in two heads
  expect_the_same(reading);
  const auto held = device_->account().held();
  attention_.free_copies();
  EXPECT_LT(device_->account().held(), held);
  expect_the_same(reading);
  EXPECT_EQ(device_->account().held(), held);
}

TEST_F(DeviceDecode, frees_the_copy_with_its_lanes) {
  Text one({kHeads, 64, KvType::parse("f16")}, 100, 1);
  expect_the_same({shape_of(kHeads, kGroup, 64), kNoRope, {&one.lanes()}, {}});
  const auto before = device_->account().held();
  {
    Text other({kHeads, 64, KvType::parse("f16")}, 100, 1);
    expect_the_same({shape_of(kHeads, kGroup, 64), kNoRope, {&other.lanes()}, {}});
    EXPECT_GT(device_->account().held(), before);
  }
  EXPECT_EQ(device_->account().held(), before);
}

TEST(RefusedStep, is_computed_by_the_cpu_and_told_once) {
  MemoryAccount account;
  const auto device = test::host_device_that_refuses();
  device::Decode attention(*device, account, std::make_unique<cpu::Decode>(account, 2));
  Text text({kHeads, 64, KvType::parse("f16")}, 100, 1);
  const Reading reading{shape_of(kHeads, kGroup, 64), kNoRope, {&text.lanes()}, {}};
  cpu::Decode cpu(account, 2);
  testing::internal::CaptureStderr();
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(step(attention, reading).out, step(cpu, reading).out);
    text.append(1);
  }
  const auto said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(said.find("no kernel for this device"), said.rfind("no kernel for this device")) << said;
  EXPECT_NE(said.find("computed on the CPU"), std::string::npos) << said;
}

TEST(CopiesOfLanes, leave_room_for_a_prompt) {
  MemoryAccount account;
  const auto device = test::host_device_with_kernels(1'000'000);
  device->check_for_prompt(900'000);
  device::Decode attention(*device, account, std::make_unique<cpu::Decode>(account, 2));
  Text text({kHeads, 64, KvType::parse("f16")}, 300, 1);
  cpu::Decode cpu(account, 2);
  const Reading reading{shape_of(kHeads, kGroup, 64), kNoRope, {&text.lanes()}, {}};
  EXPECT_EQ(step(attention, reading).out, step(cpu, reading).out);
  EXPECT_EQ(device->account().held(), 0U);
  EXPECT_NO_THROW(device->check_for_prompt(900'000));
}

/// Wherever the device is full, the CPU computes the step, and later steps see all changes of the lanes.
TEST(FullDevice, leaves_steps_to_the_cpu) {
  const cache::LaneShape shape{kHeads, 64, KvType::parse("f16")};
  int by_kernels = 0;
  for (std::size_t bytes = 0; bytes < 400'000; bytes += 20'000) {
    MemoryAccount account;
    const auto device = test::host_device_with_kernels(bytes);
    device::Decode attention(*device, account, std::make_unique<cpu::Decode>(account, 2));
    cpu::Decode cpu(account, 2);
    Text text(shape, 200, 1);
    const Reading reading{shape_of(kHeads, kGroup, 64), kNoRope, {&text.lanes()}, {}};
    for (int i = 0; i < 4; ++i) {
      const auto want = step(cpu, reading);
      const auto got = step(attention, reading);
      expect_near(got.out, want.out, tolerance(shape.type), "output");
      by_kernels += got.out == want.out ? 0 : 1;
      text.append(90);
    }
  }
  EXPECT_GT(by_kernels, 0);
  EXPECT_LT(by_kernels, 80);
}

}  // namespace
}  // namespace winnow::attention
