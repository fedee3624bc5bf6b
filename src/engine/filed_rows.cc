// SPDX-License-Identifier: Apache-2.0
#include "engine/filed_rows.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/as_size.h"
#include "base/hash.h"
#include "base/log.h"
#include "winnow/store_error.h"

namespace winnow::engine {

FiledRows::FiledRows(std::shared_ptr<store::Values> values, TextName name, std::vector<std::size_t> sizes)
    : values_(std::move(values)),
      name_(std::move(name)),
      sizes_(std::move(sizes)),
      bytes_(value_bytes(name_, sizes_)),
      sums_(sizes_.size()) {}

bool FiledRows::begin() {
  part_ = values_->begin(name_.key.print(), bytes_);
  return is_new();
}

std::size_t FiledRows::place_of(int layer) const {
  return std::accumulate(sizes_.begin(), sizes_.begin() + layer, value_head_bytes(name_, sizes_));
}

void FiledRows::write(int layer, std::span<const std::byte> rows) {
  sums_[as_size(layer)] = hash_of(rows);
  part_->write(place_of(layer), rows);
}

store::NewValue FiledRows::finished() {
  store::NewValue out{.key = name_.key.print(), .size = bytes_};
  if (!is_new() || std::exchange(is_finished_, true)) return out;
  part_->write(0, value_head(name_, sizes_, sums_));
  out.part = part_.get();
  return out;
}

FiledRows::Found FiledRows::open() {
  const auto found = values_->get(name_.key.print(), bytes_);
  if (!found) return Found::missing;
  if (found->parts.empty()) return Found::damaged;
  auto rest = found->parts.front();
  auto sums = sums_of(rest, name_, sizes_);
  if (!sums) return Found::damaged;
  sums_ = std::move(*sums);
  rest = rest.subspan(value_head_bytes(name_, sizes_));
  for (std::size_t layer = 0; layer < sizes_.size(); ++layer) {
    if (hash_of(rest.first(sizes_[layer])) != sums_[layer]) return Found::damaged;
    rest = rest.subspan(sizes_[layer]);
  }
  return Found::good;
}

bool FiledRows::read_layer(int layer, std::span<std::byte> to) const {
  const std::size_t place = place_of(layer);
  try {
    const auto found = values_->get_part(name_.key.print(), bytes_, {place, place + to.size()});
    if (!found) return false;
    if (!found->parts.empty()) std::ranges::copy(found->parts.front(), to.begin());
    if (!found->parts.empty() && hash_of(to) == sums_[as_size(layer)]) return true;
    values_->erase(name_.key.print());  // so that a good one takes its place
  } catch (const StoreError& error) {
    log().warn("{}", error.what());
  }
  return false;
}

void FiledRows::read(int layer, std::span<std::byte> to) const {
  if (read_layer(layer, to)) return;
  is_lost_ = true;
  throw TextLost(fmt::format("a block of a text in {} is gone; the text is read anew from there", values_->name()));
}

}  // namespace winnow::engine
