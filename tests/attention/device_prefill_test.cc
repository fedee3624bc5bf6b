// SPDX-License-Identifier: Apache-2.0
// Attention of prompts by a device's kernels, which the emulator runs over memory that is locked to everybody else,
// compared with the CPU's in f32.
#include <cstdlib>
#include <cstring>

#include "attention/device/prefill.h"
#include "fixture.h"
#include "support/host_device.h"
#include "winnow/error.h"

namespace winnow::attention {
namespace {

using Kind = QueryRowSet::Kind;

constexpr int kTokens = 100;
constexpr int kChunk = 37;
constexpr int kDim = 16;

/// Queries and probabilities are rounded to f16 or bf16 by the kernels: an error of logits near 1, and of values.
float tolerance(ElementType type) { return type == ElementType::f16 ? 3e-3F : 2e-2F; }

/// Results of a prompt.
struct Results {
  std::vector<float> out;      ///< [n][H_q][d]
  std::vector<float> logsums;  ///< [n][H_q]
  std::vector<ColumnStatistics> columns;
};

/// Requests for statistics, and the keys that they record.
struct Observing {
  std::vector<ColumnRequest> requests = {};
  KeyRange recorded = {};
  std::vector<float> row_scales = {};  ///< [n] or empty
  int copy_distance = 0;
};

struct Source {
  const Shape& shape;
  const cache::LayerScratch& scratch;
  const float* q;
  int n;
  const cache::PastRows* past = nullptr;
};

Results read(PrefillAttention& attention, const Source& from, const Observing& observing, int chunk = kChunk) {
  const auto heads = z(from.shape.query_heads);
  const auto row = heads * z(from.shape.head_dim);
  Results r{
      std::vector<float>(z(from.n) * row, std::nanf("")), std::vector<float>(z(from.n) * heads, std::nanf("")), {}};
  std::vector<ColumnStatistics*> columns;
  r.columns.reserve(observing.requests.size());
  for (const auto& request : observing.requests)
    columns.push_back(&r.columns.emplace_back(request, from.shape.query_heads, from.n));
  for (auto* const one : columns) one->begin_copy(observing.copy_distance);
  for (int at = 0; at < from.n; at += chunk) {
    attention.record_logsums(r.logsums.data() + z(at) * heads);
    attention.begin(
        {from.shape, from.q + z(at) * row, r.out.data() + z(at) * row, at, std::min(chunk, from.n - at), columns,
         observing.recorded, observing.row_scales.empty() ? nullptr : observing.row_scales.data() + at, from.past},
        from.scratch);
    on_team(2, [&](Worker w) { attention.run(w); });
    on_team(2, [&](Worker w) { attention.reduce(w); });
  }
  return r;
}

void expect_near(std::span<const float> got, std::span<const float> want, float relative, float absolute) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_TRUE(std::abs(got[i] - want[i]) <= absolute + relative * std::abs(want[i]))
        << i << ": " << got[i] << " " << want[i];
}

void expect_alike(const Results& got, const Results& want, ElementType type) {
  expect_near(got.out, want.out, 0, tolerance(type));
  expect_near(got.logsums, want.logsums, 0, tolerance(type));
  for (std::size_t i = 0; i < want.columns.size(); ++i) {
    SCOPED_TRACE(i);
    for (int head = 0; head < want.columns[i].query_heads(); ++head)
      expect_near(got.columns[i].head(head), want.columns[i].head(head), tolerance(type), 1e-4F);
  }
}

class DevicePrefill : public testing::Test {
 protected:
  std::unique_ptr<PrefillAttention> cpu() { return std::make_unique<cpu::Prefill>(account_, 2); }

  void expect_the_same(const Prompt& p, const Observing& observing = {}, int chunk = kChunk) {
    const Source from{p.shape, p.scratch, p.q.data(), p.n};
    expect_alike(read(attention_, from, observing, chunk), read(*cpu(), from, observing, chunk), p.scratch.type());
  }

  MemoryAccount account_;
  std::shared_ptr<winnow::device::Device> device_ = test::tested_device_with_kernels();
  device::Prefill attention_{*device_, cpu()};
};

TEST_F(DevicePrefill, agrees_with_the_cpu_in_any_chunks) {
  for (const auto type : {ElementType::f16, ElementType::bf16}) {
    for (const int chunk : {1 + kTokens, kChunk, 64}) {
      SCOPED_TRACE(chunk);
      expect_the_same(Prompt(shape_of(2, 2, kDim), kTokens, type), {}, chunk);
    }
  }
}

TEST_F(DevicePrefill, has_windows_caps_and_sinks) {
  for (const int window : {0, 30}) {
    for (const auto& caps : kCaps) {
      auto shape = shape_of(1, 2, kDim);
      shape.window = window;
      const auto sinks = set_caps(caps, shape);
      expect_the_same(Prompt(shape, kTokens, ElementType::f16));
    }
  }
}

TEST_F(DevicePrefill, records_the_rows_that_are_asked_for) {
  const std::vector<QueryRowSet> sets{{Kind::last, 1, {}}, {Kind::last, 50, {}},
                                      {Kind::all, 0, {}},  {Kind::band, 0, {}},
                                      {Kind::band, 5, {}}, {Kind::listed, 0, {0, 36, 37, 60, 99}}};
  for (const auto reduction : {Reduction::sum, Reduction::max}) {
    Observing all;
    for (const auto& rows : sets) all.requests.push_back({rows, reduction});
    for (const KeyRange recorded : {KeyRange{}, KeyRange{20, 70}, KeyRange{90, 95}}) {
      SCOPED_TRACE(recorded.begin);
      all.recorded = recorded;
      expect_the_same(Prompt(shape_of(2, 2, kDim), kTokens, ElementType::f16), all);
      auto windowed = shape_of(1, 2, kDim);
      windowed.window = 30;
      expect_the_same(Prompt(windowed, kTokens, ElementType::f16), all);
    }
  }
}

/// Attention from copies of tokens, so far behind them.
Observing of_copies(int distance, KeyRange recorded) {
  Observing out{{}, recorded, {}, distance};
  for (const auto reduction : {Reduction::sum, Reduction::max})
    out.requests.push_back({{Kind::copies, 0, {}}, reduction});
  return out;
}

TEST_F(DevicePrefill, records_the_tokens_that_rows_copy) {
  for (const int window : {0, 30}) {
    auto shape = shape_of(2, 2, kDim);
    shape.window = window;
    const Prompt p(shape, kTokens, ElementType::f16);
    for (const int distance : {0, 1, 20, 29, 30, 31, 70, 99, 100, 101}) {
      SCOPED_TRACE(distance);
      for (const KeyRange recorded : {KeyRange{}, KeyRange{20, 70}}) {
        auto observing = of_copies(distance, recorded);
        expect_the_same(p, observing);
        observing.row_scales.assign(kTokens, 0.5F);
        expect_the_same(p, observing, kTokens);
      }
    }
  }
}

TEST_F(DevicePrefill, weighs_rows) {
  Observing weighted{
      {{{Kind::last, 3, {}}, Reduction::sum}, {{Kind::all, 0, {}}, Reduction::max}, {{Kind::all, 0, {}}}}};
  weighted.requests[0].weight = {0.5F, 2, 3};
  weighted.requests[1].scale = RowScale::inverse_input;
  for (int i = 0; i < kTokens; ++i)
    weighted.row_scales.push_back(i % 7 == 0 ? 0 : 0.5F * static_cast<float>(i % 3 + 1));
  expect_the_same(Prompt(shape_of(1, 2, kDim), kTokens, ElementType::f16), weighted);
}

TEST_F(DevicePrefill, sees_the_kept_entries_of_earlier_text) {
  for (const int window : {0, 40}) {
    auto shape = shape_of(2, 2, kDim);
    shape.window = window;
    Prompt all(shape, kTokens, ElementType::f16);
    for (const auto& kept : {std::vector{20, 3}, std::vector{0, 30}, std::vector{0, 0}}) {
      const Later later(all, 30, kept);
      const Source from{shape, later.scratch, all.q.data() + z(30) * z(shape.query_heads * kDim), later.n(),
                        &later.past};
      for (const auto& observing : {Observing{{{{Kind::all, 0, {}}}}}, of_copies(25, {})})
        expect_alike(read(attention_, from, observing), read(*cpu(), from, observing), ElementType::f16);
    }
  }
}

/// An array in a device's memory.
class OnIt {
 public:
  OnIt(winnow::device::Device& device, std::span<const float> from) : memory_(device, from.size_bytes(), "a test") {
    memory_.write(0, std::as_bytes(from));
  }
  float* data() const { return reinterpret_cast<float*>(memory_.at(0)); }
  void read(std::span<float> to) const { memory_.read(0, std::as_writable_bytes(to)); }

 private:
  winnow::device::DeviceMemory memory_;
};

/// Reads a prompt whose tensors are in the device's memory. `scratch` gets its rows.
Results read_tensors(device::Prefill& attention, winnow::device::Device& device, const Prompt& p,
                     cache::LayerScratch& scratch, const Observing& observing, const cache::PastRows* past = nullptr) {
  const auto heads = z(p.shape.query_heads);
  const auto queries = heads * z(p.shape.head_dim);
  const auto row = z(p.shape.kv_heads * p.shape.head_dim);
  Results r{std::vector<float>(z(p.n) * queries), std::vector<float>(z(p.n) * heads), {}};
  std::vector<ColumnStatistics*> columns;
  r.columns.reserve(observing.requests.size());
  for (const auto& request : observing.requests)
    columns.push_back(&r.columns.emplace_back(request, p.shape.query_heads, p.n));
  for (auto* const one : columns) one->begin_copy(observing.copy_distance);
  for (int at = 0; at < p.n; at += kChunk) {
    const int count = std::min(kChunk, p.n - at);
    const auto part = [&](std::span<const float> of, std::size_t width) {
      return OnIt(device, of.subspan(z(at) * width, z(count) * width));
    };
    const auto q = part(p.q, queries);
    const auto keys = part(p.keys, row);
    const auto values = part(p.values, row);
    const auto out = part(r.out, queries);
    scratch.extend(std::vector<std::int32_t>(z(count)));
    attention.record_logsums(r.logsums.data() + z(at) * heads);
    EXPECT_EQ(attention.attend_on_device(
                  {p.shape, q.data(), out.data(), at, count, columns, observing.recorded, nullptr, past},
                  {keys.data(), values.data()}, scratch),
              winnow::device::OnDevice::done);
    out.read(std::span(r.out).subspan(z(at) * queries, z(count) * queries));
  }
  return r;
}

std::vector<std::byte> rows_of(const cache::LayerScratch& scratch) {
  std::vector<std::byte> out(scratch.bytes_of_rows(scratch.size()));
  scratch.copy_rows(0, scratch.size(), scratch.type(), out.data());
  return out;
}

/// Reads some rows before the others are in the host's memory.
void expect_some_rows(const cache::LayerScratch& got, const cache::LayerScratch& want) {
  const std::vector<std::vector<std::int32_t>> some{{0, 3, 40, 99}, {17}};
  const auto before = test::traffic();
  got.fetch(some);
  const auto row = cache::row_bytes(got.type(), got.head_dim());
  if (std::getenv("WINNOW_TEST_DEVICE") == nullptr) {
    EXPECT_EQ((test::traffic() - before).bytes_to_host, 5 * 2 * row);
  }
  for (const int head : {0, 1}) {
    for (const int at : some[z(head)]) {
      EXPECT_EQ(std::memcmp(got.fetched_keys(head).row(at), want.keys(head).row(at), row), 0);
      EXPECT_EQ(std::memcmp(got.fetched_values(head).row(at), want.values(head).row(at), row), 0);
    }
  }
}

/// Products of rows that the host's memory lacks.
void expect_the_same_products(const cache::LayerScratch& got, const cache::LayerScratch& want) {
  const auto vector = noise(z(got.head_dim()), 3);
  const auto before = test::traffic();
  for (const auto of : {cache::RowProducts::Of::keys, cache::RowProducts::Of::values}) {
    for (const int head : {0, 1}) {
      EXPECT_EQ(got.products({of, head}), want.products({of, head}));
      EXPECT_EQ(got.products({of, head, vector}), want.products({of, head, vector}));
    }
  }
  if (std::getenv("WINNOW_TEST_DEVICE") == nullptr) {
    EXPECT_EQ((test::traffic() - before).bytes_to_host, 8 * z(got.size()) * sizeof(double));
  }
}

TEST_F(DevicePrefill, takes_tensors_in_the_devices_memory) {
  const Observing observing{
      {{{Kind::last, 20, {}}}, {{Kind::all, 0, {}}, Reduction::max}, {{Kind::copies, 0, {}}}}, {10, 90}, {}, 25};
  for (const auto type : {ElementType::f16, ElementType::bf16}) {
    for (const int window : {0, 30}) {
      auto shape = shape_of(2, 2, kDim);
      shape.window = window;
      const Prompt p(shape, kTokens, type);
      cache::LayerScratch scratch(account_, type, shape.kv_heads, kDim, kTokens);
      const auto got = read_tensors(attention_, *device_, p, scratch, observing);
      expect_alike(got, read(*cpu(), {shape, p.scratch, p.q.data(), p.n}, observing), type);
      expect_some_rows(scratch, p.scratch);
      expect_the_same_products(scratch, p.scratch);
      EXPECT_EQ(rows_of(scratch), rows_of(p.scratch));
      const Source again{shape, scratch, p.q.data(), p.n};  // the copy is known to be up to date
      expect_alike(read(attention_, again, observing), got, type);
    }
  }
}

TEST_F(DevicePrefill, leaves_tensors_that_the_kernels_lack_to_the_host) {
  const Prompt p(shape_of(2, 2, kDim), kTokens, ElementType::f16);
  ColumnStatistics powers({{Kind::last, 2, {}}, Reduction::sum, {1.5F, 2}}, 4, kTokens);
  ColumnStatistics* const columns = &powers;
  cache::LayerScratch f16(account_, ElementType::f16, 2, kDim, kTokens);
  cache::LayerScratch f32(account_, ElementType::f32, 2, kDim, kTokens);
  for (auto* const scratch : {&f16, &f32}) scratch->extend(std::vector<std::int32_t>(z(kTokens)));
  using winnow::device::OnDevice;
  EXPECT_EQ(attention_.attend_on_device({p.shape, nullptr, nullptr, 0, kTokens, {&columns, 1}}, {}, f16),
            OnDevice::not_done);
  EXPECT_EQ(attention_.attend_on_device({p.shape, nullptr, nullptr, 0, kTokens}, {}, f32), OnDevice::not_done);
}

TEST_F(DevicePrefill, tells_of_values_that_are_not_finite) {
  const Prompt p(shape_of(1, 1, kDim), 8, ElementType::f16);
  for (const float bad : {std::nanf(""), HUGE_VALF, 1.0F}) {
    auto keys = p.keys;
    keys[17] = bad;
    const OnIt q(*device_, p.q);
    const OnIt k(*device_, keys);
    const OnIt v(*device_, p.values);
    const OnIt out(*device_, p.q);
    cache::LayerScratch scratch(account_, ElementType::f16, 1, kDim, 8);
    scratch.extend(std::vector<std::int32_t>(8));
    using winnow::device::OnDevice;
    EXPECT_EQ(attention_.attend_on_device({p.shape, q.data(), out.data(), 0, 8}, {k.data(), v.data()}, scratch),
              bad == 1 ? OnDevice::done : OnDevice::not_finite);
  }
}

TEST_F(DevicePrefill, notices_rows_that_change) {
  Prompt one(shape_of(2, 1, kDim), kTokens, ElementType::f16);
  Prompt other(shape_of(1, 2, kDim), kTokens, ElementType::f16, 5);
  for (const Prompt* p : {&one, &other, &one}) expect_the_same(*p);
  const auto row = z(one.shape.kv_heads * kDim);
  const auto rows = noise(2 * row, 9);
  one.scratch.truncate(60);
  one.scratch.extend(std::vector<std::int32_t>(10));
  for (int i = 60; i < 70; ++i) one.scratch.store(i, rows.data(), rows.data() + row);
  one.scratch.store(3, rows.data(), rows.data() + row);
  one.n = 70;
  expect_the_same(one);
  one.scratch.begin_layer({1, kDim});  // a layer with fewer heads
  one.scratch.extend(std::vector<std::int32_t>(z(kTokens)));
  for (int i = 0; i < kTokens; ++i) one.scratch.store(i, rows.data() + i % 8, rows.data() + i % 16);
  const auto shape = shape_of(1, 2, kDim);
  const Source from{shape, one.scratch, other.q.data(), kTokens};
  expect_alike(read(attention_, from, {}), read(*cpu(), from, {}), ElementType::f16);
}

TEST_F(DevicePrefill, leaves_what_the_kernels_lack_to_the_cpu) {
  const Prompt f32(shape_of(2, 2, kDim), kTokens, ElementType::f32);
  const Prompt odd(shape_of(2, 2, 12), kTokens, ElementType::f16);
  const Prompt f16(shape_of(2, 2, kDim), kTokens, ElementType::f16);
  const Observing powers{{{{Kind::last, 2, {}}, Reduction::sum, {1.5F, 2}}}};
  const auto expect_the_cpus = [&](const Prompt& p, const Observing& observing) {
    const Source from{p.shape, p.scratch, p.q.data(), p.n};
    const auto got = read(attention_, from, observing, kTokens);
    const auto want = read(*cpu(), from, observing, kTokens);
    EXPECT_EQ(got.out, want.out);
    EXPECT_EQ(got.logsums, want.logsums);
  };
  expect_the_cpus(f32, {});
  expect_the_cpus(odd, {});
  expect_the_cpus(f16, powers);
  EXPECT_EQ(device_->account().peak(), 0U);
  expect_the_same(f16, powers);
  EXPECT_GT(device_->account().peak(), 0U) << "chunks without these rows are the kernels'";
}

TEST(RefusedTask, is_computed_by_the_cpu_and_told_once) {
  MemoryAccount account;
  const auto device = test::host_device_that_refuses();
  device::Prefill attention(*device, std::make_unique<cpu::Prefill>(account, 2));
  const Prompt p(shape_of(2, 2, kDim), kTokens, ElementType::f16);
  const Source from{p.shape, p.scratch, p.q.data(), p.n};
  const Observing observing{{{{Kind::all, 0, {}}}}};
  cpu::Prefill cpu(account, 2);
  const auto want = read(cpu, from, observing);
  testing::internal::CaptureStderr();
  const auto got = read(attention, from, observing);
  const auto said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(got.out, want.out);
  EXPECT_EQ(got.logsums, want.logsums);
  EXPECT_EQ(said.find("no kernel for this device"), said.rfind("no kernel for this device")) << said;
  EXPECT_NE(said.find("attention of prompts is computed on the CPU"), std::string::npos) << said;
}

TEST(FullDevice, is_a_memory_error_and_the_next_prompt_is_read) {
  MemoryAccount account;
  const auto device = test::host_device_with_kernels(40'000);
  device::Prefill attention(*device, std::make_unique<cpu::Prefill>(account, 2));
  const Prompt large(shape_of(2, 2, kDim), 2 * kTokens, ElementType::f16);
  const Prompt small(shape_of(1, 1, kDim), kTokens, ElementType::f16);
  const Source too_much{large.shape, large.scratch, large.q.data(), large.n};
  EXPECT_THROW(read(attention, too_much, {}), MemoryError);
  const Source from{small.shape, small.scratch, small.q.data(), small.n};
  cpu::Prefill cpu(account, 2);
  expect_alike(read(attention, from, {}), read(cpu, from, {}), ElementType::f16);
}

}  // namespace
}  // namespace winnow::attention
