// SPDX-License-Identifier: Apache-2.0
#include "engine/filed_rows.h"

#include <spdlog/fmt/fmt.h>

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
  const auto found = values_->get_part(name_.key.print(), bytes_, {0, value_head_bytes(name_, sizes_)});
  if (!found) return Found::missing;
  if (found->parts.empty()) return Found::damaged;
  auto sums = sums_of(found->parts.front(), name_, sizes_);
  if (!sums) return Found::damaged;
  sums_ = std::move(*sums);
  return Found::good;
}

std::optional<store::Lease> FiledRows::read_layer(int layer) const {
  const std::size_t place = place_of(layer);
  try {
    auto found = values_->get_part(name_.key.print(), bytes_, {place, place + sizes_[as_size(layer)]});
    if (!found) return std::nullopt;
    if (!found->parts.empty() && hash_of(found->parts.front()) == sums_[as_size(layer)]) return found;
    values_->erase(name_.key.print());  // so that a good one takes its place
  } catch (const StoreError& error) {
    log().warn("{}", error.what());
  }
  return std::nullopt;
}

store::Lease FiledRows::read(int layer) const {
  if (auto rows = read_layer(layer)) return *std::move(rows);
  is_lost_ = true;
  throw TextLost(
      fmt::format("a block of a text in {} is gone or damaged; the text is read anew from there", values_->name()));
}

}  // namespace winnow::engine
