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
#include <string_view>
#include <vector>

#include "base/byte_stream.h"

/// Interface of all stores. They have small *records*, which are changed together in one step, and large *values*, each
/// of which is written once under a new key and never changed.
namespace winnow::store {

using Bytes = std::vector<std::byte>;
using Records = std::map<std::string, Bytes>;

/// Bytes [begin, end) of a value, clipped to its end.
struct ByteRange {
  std::size_t begin = 0;
  std::size_t end = 0;
};
inline constexpr ByteRange kWhole{0, SIZE_MAX};

/// Length of a range in a value of `size` bytes.
inline std::size_t length_in(const ByteRange& range, std::size_t size) {
  const std::size_t begin = std::min(range.begin, size);
  return std::max(begin, std::min(range.end, size)) - begin;
}

/// Bytes of a range.
inline std::span<const std::byte> part_of(std::span<const std::byte> value, const ByteRange& range) {
  return value.subspan(std::min(range.begin, value.size()), length_in(range, value.size()));
}

/// Parts of a value. They stay valid while `hold` lives, whatever happens to the store.
struct Lease {
  std::size_t size = 0;  ///< of the whole value
  std::vector<std::span<const std::byte>> parts;
  std::shared_ptr<const void> hold;
};

/// True for 1 to 64 digits and lowercase letters.
inline bool is_value_key(std::string_view key) {
  constexpr std::size_t kLongest = 64;
  const auto fits = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z'); };
  return !key.empty() && key.size() <= kLongest && std::all_of(key.begin(), key.end(), fits);
}

/// An atomic change of a store. Reads its own changes, otherwise the state before it.
class Change {
 public:
  virtual ~Change() = default;
  virtual std::optional<Bytes> record(const std::string& key) = 0;
  /// The records whose keys begin with `prefix`.
  virtual Records records(const std::string& prefix) = 0;
  virtual void put_record(const std::string& key, std::span<const std::byte> bytes) = 0;
  virtual void erase_record(const std::string& key) = 0;
  /// fill(sink) writes exactly `size` bytes. REQUIRES: an unused key that is_value_key().
  virtual void add_value(const std::string& key, std::size_t size, const std::function<void(ByteSink&)>& fill) = 0;
  virtual void erase_value(const std::string& key) = 0;
};

/// Thread-safe. All calls throw InputError, with the store's name, if it cannot be reached, read or written. The
/// contents of records and values are for their writers to check.
class ByteStore {
 public:
  virtual ~ByteStore() = default;
  /// Name of the store in messages.
  virtual const std::string& name() const = 0;

  virtual std::optional<Bytes> record(const std::string& key) const = 0;
  /// A snapshot of the records whose keys begin with `prefix`.
  virtual Records records(const std::string& prefix) const = 0;
  /// Copies of parts of a value; empty if there is no such value.
  virtual std::optional<Lease> value(const std::string& key, std::span<const ByteRange> ranges) const = 0;

  /// Runs `make` as one atomic, exclusive change: others see all of it, or nothing if it throws or the process dies.
  /// `make` may be called again if another process was faster. When this returns, the change is on disk (for a shared
  /// store: as durable as its server makes it).
  virtual void change(const std::function<void(Change&)>& make) = 0;
};

/// A store's location and a noun for its contents.
struct Place {
  std::string where;                   ///< a folder, or the address of a Redis server (RedisAddress)
  std::string contents = "documents";  ///< noun in messages
};

/// Handling of a missing store.
enum class Missing : std::uint8_t { is_created, is_an_error };

/// Opens a store. A folder without write permission can still be read. Throws UsageError, InputError.
std::unique_ptr<ByteStore> open(const Place& place, Missing missing);

/// Default folder of documents: $XDG_DATA_HOME/winnow/documents.
std::string default_folder();

}  // namespace winnow::store
