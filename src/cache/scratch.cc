// SPDX-License-Identifier: Apache-2.0
#include "cache/scratch.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <stdexcept>

#include "base/as_size.h"

namespace winnow::cache {

namespace {

/// Bytes of a token's keys, or of its values, in the largest layer.
std::size_t bytes_per_token(ElementType type, std::span<const KvHeads> layers) {
  std::size_t most = 0;
  for (const auto& heads : layers) most = std::max(most, as_size(heads.count) * row_bytes(type, heads.dim));
  return most;
}

/// Encoded rows of one head.
template <class Byte>
struct EncodedRows {
  ElementType type;
  Byte* data;
};

void copy(int count, int dim, EncodedRows<const std::byte> from, EncodedRows<std::byte> to) {
  const std::size_t step = row_bytes(from.type, dim);
  if (from.type == to.type) {
    std::memcpy(to.data, from.data, as_size(count) * step);
    return;
  }
  std::vector<float> row(as_size(dim));
  for (int i = 0; i < count; ++i, from.data += step, to.data += row_bytes(to.type, dim)) {
    decode_row(from.type, from.data, row);
    encode_row(to.type, row, to.data);
  }
}

}  // namespace

void ScratchCopy::add_rows(int first, int end) {
  set_rows(end);
  first_ahead_.store(std::min(first_ahead_.load(std::memory_order_relaxed), first), std::memory_order_relaxed);
}

void ScratchCopy::truncate(int count) {
  changes(count);
  if (first_ahead_.load(std::memory_order_relaxed) >= count) first_ahead_.store(kNone, std::memory_order_relaxed);
}

void ScratchCopy::complete(const LayerScratch& scratch) {
  if (!is_ahead()) return;
  const std::scoped_lock lock(completing_);
  if (!is_ahead()) return;
  read(scratch, first_ahead_.load(std::memory_order_relaxed));
  first_ahead_.store(kNone, std::memory_order_release);
}

void ScratchCopy::copy_some(const LayerScratch& scratch, std::span<const std::vector<std::int32_t>> rows) {
  std::size_t count = 0;
  for (const auto& of_head : rows) count += of_head.size();
  const std::size_t all = rows.size() * as_size(scratch.size());
  const bool are_few = 2 * count < all && this->rows() >= scratch.size();
  if (is_ahead() && !(are_few && read(scratch, rows))) complete(scratch);
}

bool ScratchCopy::multiply(const LayerScratch& scratch, const RowProducts& what, std::span<double> out) {
  return is_ahead() && rows() >= scratch.size() && products(scratch, what, out);
}

std::size_t LayerScratch::bytes(ElementType type, std::span<const KvHeads> layers, int capacity) {
  return 2 * bytes_per_token(type, layers) * as_size(capacity);
}

LayerScratch::LayerScratch(MemoryAccount& account, ElementType type, int kv_heads, int head_dim, int capacity)
    : LayerScratch(account, type, std::array{KvHeads{kv_heads, head_dim}}, capacity) {}

LayerScratch::LayerScratch(MemoryAccount& account, ElementType type, std::span<const KvHeads> layers, int capacity)
    : type_(type), heads_(layers.front()), capacity_(capacity) {
  const std::size_t token = bytes_per_token(type, layers);
  keys_ = Buffer(account, token * as_size(capacity), "one layer's keys");
  values_ = Buffer(account, token * as_size(capacity), "one layer's values");
  positions_.reserve(capacity);
}

void LayerScratch::begin_layer(const KvHeads& heads) {
  truncate(0);
  heads_ = heads;
}

void LayerScratch::truncate(int count) {
  positions_.resize(count);
  if (copy_ != nullptr) copy_->truncate(count);
}

int LayerScratch::extend(std::span<const std::int32_t> positions) {
  const int first = size();
  if (first + static_cast<int>(positions.size()) > capacity_)
    throw std::logic_error("the layer's scratch is too short");
  positions_.insert(positions_.end(), positions.begin(), positions.end());
  return first;
}

void LayerScratch::store(int row, const float* keys, const float* values) {
  if (copy_ != nullptr && row < copy_->rows()) {
    complete();
    copy_->changes(row);
  }
  const auto dim = as_size(heads_.dim);
  for (int head = 0; head < heads_.count; ++head) {
    const std::size_t at = place(head, row);
    const std::size_t from = as_size(head) * dim;
    encode_row(type_, {keys + from, dim}, keys_.data() + at);
    encode_row(type_, {values + from, dim}, values_.data() + at);
  }
}

LayerScratch::Addresses LayerScratch::addresses(int head, int row) const {
  const std::size_t at = place(head, row);
  return {keys_.data() + at, values_.data() + at};
}

void LayerScratch::fetch(std::span<const std::vector<std::int32_t>> rows) const {
  if (rows.empty()) return complete();
  if (copy_ != nullptr) copy_->copy_some(*this, rows);
}

std::vector<double> LayerScratch::products(const RowProducts& what) const {
  std::vector<double> out(as_size(size()));
  if (copy_ != nullptr && copy_->multiply(*this, what, out)) return out;
  const Rows all = what.of == RowProducts::Of::keys ? keys(what.head) : values(what.head);
  std::vector<float> row(as_size(all.dim));
  const std::span<const float> other = what.vector.empty() ? row : what.vector;
  for (int j = 0; j < all.count; ++j) {
    decode_row(all.type, all.row(j), row);
    out[as_size(j)] = std::inner_product(row.begin(), row.end(), other.begin(), 0.0);
  }
  return out;
}

std::size_t LayerScratch::bytes_of_rows(int count) const {
  return 2 * as_size(heads_.count) * as_size(count) * row_bytes(type_, heads_.dim);
}

std::size_t LayerScratch::place(int head, int row) const {
  return (as_size(head) * as_size(capacity_) + as_size(row)) * row_bytes(type_, heads_.dim);
}

void LayerScratch::copy_rows(int first, int count, ElementType type, std::byte* to) const {
  complete();
  const std::size_t size = as_size(count) * row_bytes(type, heads_.dim);
  for (const auto* const from : {&keys_, &values_}) {
    for (int head = 0; head < heads_.count; ++head, to += size)
      copy(count, heads_.dim, {type_, from->data() + place(head, first)}, {type, to});
  }
}

void LayerScratch::put_rows(int first, int count, ElementType type, const std::byte* from) {
  complete();
  if (copy_ != nullptr) copy_->changes(first);
  const std::size_t size = as_size(count) * row_bytes(type, heads_.dim);
  for (auto* const to : {&keys_, &values_}) {
    for (int head = 0; head < heads_.count; ++head, from += size)
      copy(count, heads_.dim, {type, from}, {type_, to->data() + place(head, first)});
  }
}

Rows LayerScratch::keys(int head) const {
  complete();
  return rows(keys_, head);
}

Rows LayerScratch::values(int head) const {
  complete();
  return rows(values_, head);
}

Rows LayerScratch::rows(const Buffer& buffer, int head) const {
  return {buffer.data() + place(head, 0), row_bytes(type_, heads_.dim), size(), heads_.dim, type_};
}

}  // namespace winnow::cache
