// SPDX-License-Identifier: Apache-2.0
#include "attention/device/gathered_rows.h"

#include <algorithm>
#include <cstring>

#include "attention/device/store_task.h"
#include "base/as_size.h"
#include "cache/element.h"
#include "winnow/error.h"

namespace winnow::attention::device {

using winnow::device::StoredRun;

namespace {

std::size_t row_bytes(const cache::LayerScratch& scratch) {
  return cache::row_bytes(scratch.type(), scratch.head_dim());
}

}  // namespace

bool GatheredRows::copy(const cache::LayerScratch& scratch, const std::byte* keys, const std::byte* values, Rows rows) {
  std::size_t count = 0;
  for (const auto& of_head : rows) count += of_head.size();
  on_host_.resize(2 * count * row_bytes(scratch));
  try {
    place(rows);
  } catch (const MemoryError&) {
    return false;
  }
  runs_.clear();
  add_runs(scratch, keys, rows);
  add_runs(scratch, values, rows);
  if (!gather(scratch, rows)) return false;
  work_.read(0, std::span(on_host_));
  scatter(scratch, rows);
  return true;
}

void GatheredRows::place(Rows rows) {
  std::vector<std::int32_t> numbers;
  for (const auto& of_head : rows) numbers.insert(numbers.end(), of_head.begin(), of_head.end());
  work_.clear();
  work_.add(on_host_.size());
  numbers_ = work_.add(numbers.size() * sizeof(std::int32_t));
  of_runs_ = work_.add(2 * rows.size() * sizeof(StoredRun));
  work_.reserve();
  work_.write(numbers_, std::span(numbers));
}

void GatheredRows::add_runs(const cache::LayerScratch& scratch, const std::byte* from, Rows rows) {
  const std::size_t bytes = row_bytes(scratch);
  auto* to = work_.at<std::byte>(0) + (runs_.empty() ? 0 : on_host_.size() / 2);
  const auto* numbers = work_.at<std::int32_t>(numbers_);
  for (std::size_t head = 0; head < rows.size(); ++head) {
    StoredRun run{};
    run.from = from + head * as_size(scratch.capacity()) * bytes;
    run.to = to;
    run.rows = numbers;
    run.count = static_cast<std::int32_t>(rows[head].size());
    runs_.push_back(run);
    to += rows[head].size() * bytes;
    numbers += rows[head].size();
  }
}

bool GatheredRows::gather(const cache::LayerScratch& scratch, Rows rows) {
  work_.write(of_runs_, std::span(runs_));
  const auto most = std::ranges::max_element(rows, {}, &std::vector<std::int32_t>::size)->size();
  const auto element = static_cast<winnow::device::Element>(scratch.type());
  const RunsOfRows all{work_.at<StoredRun>(of_runs_), runs_.size(), static_cast<int>(most), scratch.head_dim()};
  return device_.queue(&winnow::device::Kernels::store, store_task(all, element, element)) == nullptr;
}

void GatheredRows::scatter(const cache::LayerScratch& scratch, Rows rows) const {
  const std::size_t bytes = row_bytes(scratch);
  const std::byte* key = on_host_.data();
  const std::byte* value = key + on_host_.size() / 2;
  for (std::size_t head = 0; head < rows.size(); ++head) {
    for (const auto row : rows[head]) {
      const auto to = scratch.addresses(static_cast<int>(head), row);
      std::memcpy(to.keys, key, bytes);
      std::memcpy(to.values, value, bytes);
      key += bytes;
      value += bytes;
    }
  }
}

}  // namespace winnow::attention::device
