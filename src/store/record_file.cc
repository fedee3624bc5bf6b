// SPDX-License-Identifier: Apache-2.0
#include "store/record_file.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/hash.h"
#include "winnow/error.h"

namespace winnow::store {

namespace {

constexpr std::array<char, 8> kMagic{'w', 'i', 'n', 'n', 'o', 'w', 'r', 'c'};

/// Throws if a key could not be the name of a file in the store.
std::string take_value_key(ByteCursor& from) {
  std::string key = from.text("a value's key");
  if (!is_value_key(key)) from.fail("a value has an invalid key");
  return key;
}

std::vector<std::string> take_value_keys(ByteCursor& from) {
  std::vector<std::string> out;
  for (auto left = from.take<std::uint32_t>("the number of values"); left > 0; --left)
    out.push_back(take_value_key(from));
  return out;
}

void put_keys(ByteSink& to, const std::vector<std::string>& keys) {
  put(to, static_cast<std::uint32_t>(keys.size()));
  for (const auto& key : keys) put(to, std::string_view(key));
}

/// Where the bytes of a record are. The numbers are stored.
enum class Stored : std::uint8_t { here = 0, in_a_value = 1 };

Stored take_stored(ByteCursor& from) {
  const auto out = from.take<std::uint8_t>("the place of a record");
  if (out > static_cast<std::uint8_t>(Stored::in_a_value)) from.fail(fmt::format("a record is at place {}", out));
  return Stored{out};
}

/// Checks the header and the index's checksum; returns a cursor over the index, and its end.
std::pair<ByteCursor, std::size_t> open_index(const MemorySource& file, std::span<const std::byte> bytes) {
  ByteCursor all(file, 0, bytes.size());
  std::array<char, kMagic.size()> magic{};
  all.read(std::span<char>(magic), "the header");
  if (magic != kMagic) all.fail("it is not a file of records");
  const auto size = all.take<std::uint64_t>("the size of the index");
  const auto index = all.part(size, "the index");
  const auto expected = all.take<std::uint64_t>("the checksum");
  const std::size_t end = bytes.size() - all.left();
  const auto sum = hash_of(bytes.first(end - sizeof(expected)));
  if (sum != expected) all.fail(fmt::format("the checksum of its index is {:016x}, expected {:016x}", sum, expected));
  return {index, end};
}

}  // namespace

RecordFile::RecordFile(Bytes file, const std::string& name) : file_(std::move(file)) {
  const MemorySource source(file_, name);
  auto [index, at] = open_index(source, file_);
  step_.added = take_value_keys(index);
  step_.erased = take_value_keys(index);
  while (index.left() > 0) {
    FiledRecord record{index.text("a record's key"), {}};
    if (!records_.empty() && records_.back().key >= record.key) index.fail("its keys are out of order");
    if (take_stored(index) == Stored::in_a_value) {
      record.value = take_value_key(index);
    } else {
      const auto size = index.take<std::uint32_t>("a record's size");
      if (size > file_.size() - at) index.fail(fmt::format("it is truncated: it has {} bytes", file_.size()));
      record.bytes = std::span(file_).subspan(at, size);
      at += size;
    }
    records_.push_back(std::move(record));
  }
  if (at != file_.size()) index.fail(fmt::format("it has {} bytes, expected {}", file_.size(), at));
}

void RecordFile::write(ByteSink& to, std::span<const FiledRecord> records, const StepValues& step) {
  MemorySink index;
  put_keys(index, step.added);
  put_keys(index, step.erased);
  for (const auto& record : records) {
    put(index, std::string_view(record.key));
    put(index, static_cast<std::uint8_t>(record.value.empty() ? Stored::here : Stored::in_a_value));
    if (record.value.empty())
      put(index, static_cast<std::uint32_t>(record.bytes.size()));
    else
      put(index, std::string_view(record.value));
  }
  MemorySink file;
  put(file, std::span<const char>(kMagic));
  put(file, static_cast<std::uint64_t>(index.bytes().size()));
  file.write(index.bytes());
  put(file, hash_of(file.bytes()));
  for (const auto& record : records) file.write(record.bytes);
  to.write(file.bytes());
}

const FiledRecord* RecordFile::find(std::string_view key) const {
  const auto it = std::lower_bound(records_.begin(), records_.end(), key,
                                   [](const auto& record, const auto& wanted) { return record.key < wanted; });
  return it != records_.end() && it->key == key ? &*it : nullptr;
}

std::span<const FiledRecord> RecordFile::beginning_with(std::string_view prefix) const {
  const auto begin = std::lower_bound(records_.begin(), records_.end(), prefix,
                                      [](const auto& record, const auto& wanted) { return record.key < wanted; });
  const auto end =
      std::find_if_not(begin, records_.end(), [&](const auto& record) { return record.key.starts_with(prefix); });
  return {begin, end};
}

}  // namespace winnow::store
