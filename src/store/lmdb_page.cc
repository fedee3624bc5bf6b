// SPDX-License-Identifier: Apache-2.0
#include "store/lmdb_page.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <bit>

#include "winnow/error.h"

namespace winnow::store::lmdb {

void fail(const ByteSource& file, const std::string& why) {
  throw InputError(fmt::format("{} was not made by winnow, or is damaged: {}", file.name(), why));
}

Meta read_meta(const ByteSource& file, std::uint64_t page, std::size_t page_size) {
  const std::uint64_t at = page * page_size;
  if (file.size() < at + sizeof(PageHeader) + sizeof(Meta)) fail(file, fmt::format("it has {} bytes", file.size()));
  const auto header = read_at<PageHeader>(file, at);
  const Meta meta = read_at<Meta>(file, at + sizeof(header));
  if (header.number != page || header.flags != kMeta || meta.magic != kMagic || meta.version != kVersion)
    fail(file, fmt::format("page {} is not one of LMDB's meta pages", page));
  const std::size_t size = meta.free.pad;
  if (size < kLeastPage || size > kMostPage || !std::has_single_bit(size) || (page_size != 0 && size != page_size))
    fail(file, fmt::format("page {} says that pages have {} bytes", page, size));
  if (meta.free.flags != kNumberKeys || meta.main.flags != 0 || meta.main.pad != 0)
    fail(file, fmt::format("page {} has a tree of another kind", page));
  if (meta.last_page < kMetaPages - 1 || meta.last_page >= (std::uint64_t{1} << 48U) / size)
    fail(file, fmt::format("page {} says that the last page is {}", page, meta.last_page));
  return meta;
}

Page::Page(const ByteSource& file, std::uint64_t number, std::size_t size, std::uint16_t flags)
    : file_(file), number_(number), bytes_(size) {
  file.read(number * size, bytes_);
  header_ = at<PageHeader>(0);
  if (header_.number != number) fail(fmt::format("has the number {}", header_.number));
  if (header_.flags != flags) fail(fmt::format("is of kind {}, expected {}", header_.flags, flags));
  if (header_.lower < sizeof(header_) || header_.lower > header_.upper || header_.upper > size ||
      header_.lower % sizeof(std::uint16_t) != 0)
    fail(fmt::format("has free space from byte {} to byte {}", header_.lower, header_.upper));
  for (std::size_t i = 0; i < count(); ++i) offsets_.push_back(at<std::uint16_t>(sizeof(header_) + 2 * i));
  check_places();
}

std::string Page::key(std::size_t i) const {
  return {reinterpret_cast<const char*>(bytes_.data()) + offsets_[i] + sizeof(NodeHeader), node(i).key_size};
}

std::span<const std::byte> Page::data(std::size_t i) const {
  return std::span(bytes_).subspan(offsets_[i] + sizeof(NodeHeader) + node(i).key_size, data_size(i));
}

void Page::fail(const std::string& why) const { lmdb::fail(file_, fmt::format("page {} {}", number_, why)); }

std::size_t Page::data_size(std::size_t i) const {
  if (header_.flags == kBranch) return 0;
  return node(i).flags == kOverflowing ? sizeof(std::uint64_t) : node(i).data_size();
}

/// Checks that the nodes fill the page from `upper` to its end, each at an even byte.
void Page::check_places() const {
  std::vector<std::size_t> order(count());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](auto a, auto b) { return offsets_[a] < offsets_[b]; });
  std::size_t place = header_.upper;
  for (const auto i : order) {
    const std::size_t end = offsets_[i] + sizeof(NodeHeader);
    if (offsets_[i] != place || end > bytes_.size()) fail(fmt::format("has node {} at byte {}", i, offsets_[i]));
    place = end + node(i).key_size + data_size(i);
    place += place % 2;
    if (place > bytes_.size()) fail(fmt::format("has node {} beyond its end", i));
  }
  if (place != bytes_.size()) fail(fmt::format("has nodes up to byte {}", place));
}

}  // namespace winnow::store::lmdb
