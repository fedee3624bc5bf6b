// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/byte_stream.h"

/// What all stores have in common: small *records* that are changed together in one step, and large *values*. A value
/// is written once under a key of its own and never changed.
namespace winnow::store {

using Bytes = std::vector<std::byte>;
using Records = std::map<std::string, Bytes>;

/// Bytes [begin, end) of a value; what lies beyond its end is cut.
struct ByteRange {
  std::size_t begin = 0;
  std::size_t end = 0;
};
inline constexpr ByteRange kWhole{0, SIZE_MAX};

/// The length of a range in a value of `size` bytes.
inline std::size_t length_in(const ByteRange& range, std::size_t size) {
  const std::size_t begin = std::min(range.begin, size);
  return std::max(begin, std::min(range.end, size)) - begin;
}

/// The bytes of a range.
inline std::span<const std::byte> part_of(std::span<const std::byte> value, const ByteRange& range) {
  return value.subspan(std::min(range.begin, value.size()), length_in(range, value.size()));
}

/// Parts of a value. They stay where they are, whatever happens to the store, while `hold` lives.
struct Lease {
  std::size_t size = 0;  ///< of the whole value
  std::vector<std::span<const std::byte>> parts;
  std::shared_ptr<const void> hold;
  bool is_copy = false;  ///< fetched for this lease: another one may find other bytes
};

/// One step that changes a store. It reads its own changes, else the state before the step.
class Change {
 public:
  virtual ~Change() = default;
  virtual std::optional<Bytes> record(const std::string& key) = 0;
  /// Those whose keys begin with `prefix`.
  virtual Records records(const std::string& prefix) = 0;
  virtual void put_record(const std::string& key, std::span<const std::byte> bytes) = 0;
  virtual void erase_record(const std::string& key) = 0;
  /// fill(sink) writes exactly `size` bytes. REQUIRES: a key that was never used and has an even length, so that
  /// numbers in the value are aligned where it is read in place.
  virtual void add_value(const std::string& key, std::size_t size, const std::function<void(ByteSink&)>& fill) = 0;
  virtual void erase_value(const std::string& key) = 0;
};

/// Thread-safe. All calls throw InputError when the store cannot be reached, read or written; the sentence has its
/// name.
class ByteStore {
 public:
  virtual ~ByteStore() = default;
  /// What messages call it.
  virtual const std::string& name() const = 0;

  virtual std::optional<Bytes> record(const std::string& key) const = 0;
  /// Those whose keys begin with `prefix`, as they were at one moment.
  virtual Records records(const std::string& prefix) const = 0;
  /// Looks for damage in the store's own structures, if it has any. The contents of records and values are for their
  /// writer to check.
  virtual void check() const {}
  /// Parts of a value, in place where that is possible; nothing when there is no such value.
  virtual std::optional<Lease> value(const std::string& key, std::span<const ByteRange> ranges) const = 0;

  /// Runs `make` as one atomic step: others see all of its changes, or none when it throws or the process dies. Nobody
  /// else changes anything meanwhile. `make` may be called again when another process was faster. When this returns,
  /// the step is on the disk (of a shared store: as safe as its server keeps it).
  virtual void change(const std::function<void(Change&)>& make) = 0;
};

/// A store that nobody else sees and that ends with the process.
std::unique_ptr<ByteStore> open_memory();

/// Where a store is, and what is kept there.
struct Place {
  std::string where;                   ///< a folder, or the address of a Redis server (RedisAddress)
  std::string contents = "documents";  ///< what messages call that
};

/// What to do where there is no store yet.
enum class Missing : std::uint8_t { is_created, is_an_error };

/// A folder that cannot be written can still be read. Throws UsageError, InputError.
std::unique_ptr<ByteStore> open(const Place& place, Missing missing);

/// Where documents lie when nothing else is said: $XDG_DATA_HOME/winnow/documents.
std::string default_folder();

}  // namespace winnow::store
