// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/byte_stream.h"
#include "store/byte_store.h"

namespace winnow::store {

/// A value that is being written in parts. It is removed with the object, unless it has been stored.
class ValuePart {
 public:
  virtual ~ValuePart() = default;
  /// Throws StoreError.
  virtual void write(std::size_t at, std::span<const std::byte> bytes) = 0;
};

/// A value, and how it comes into the store.
struct NewValue {
  std::string key;  ///< 32 hexadecimal digits
  std::size_t size = 0;
  std::function<void(ByteSink&)> fill = {};  ///< writes exactly `size` bytes; empty: the value is only used
  ValuePart* part = nullptr;                 ///< in place of `fill`: all bytes have been written to this part
};

/// Bytes and number of stored values.
struct ValuesHeld {
  std::size_t bytes = 0;
  std::size_t count = 0;
};

/// Large values that can be computed again: they may be dropped at any time, and their readers check them for damage.
/// Each is written once under its key. Thread-safe. All calls throw StoreError, with the store's name, if it cannot be
/// reached, read or written.
class Values {
 public:
  virtual ~Values() = default;
  /// Name of the store in messages.
  virtual const std::string& name() const = 0;

  /// Which of these values exist, [key].
  virtual std::vector<bool> exist(std::span<const std::string> keys) = 0;
  /// A value as one part. Nullopt if there is none; without parts if its size differs.
  virtual std::optional<Lease> get(const std::string& key, std::size_t size) = 0;
  /// The most bytes of values that can be written and read in parts; 0: none can.
  virtual std::size_t room_for_parts() const = 0;
  /// Begins a value of `size` bytes, which keep() will store. Null if this process has begun as many as have room.
  /// Lives no longer than the store.
  virtual std::unique_ptr<ValuePart> begin(const std::string& key, std::size_t size) = 0;
  /// Reads a part of a value like get(); after its beginning, the rest is expected to be read soon. REQUIRES: room for
  /// parts.
  virtual std::optional<Lease> get_part(const std::string& key, std::size_t size, const ByteRange& range) = 0;
  /// Stores the missing values of a chain, from its beginning. Records that all were used now, with earlier values of
  /// the chain a little later, so that the chain's end is dropped first. Stops if there is no more room, or if a
  /// value that is only used is missing.
  virtual void keep(std::span<const NewValue> chain) = 0;
  /// Removes a value, such as a damaged one.
  virtual void erase(const std::string& key) = 0;
  /// The stored values, if the store reports them.
  virtual std::optional<ValuesHeld> held() const = 0;
};

/// True for a folder, false for a Redis server. Throws UsageError for other places.
bool is_folder(const Place& place);

/// Opens values in a folder, of at most `most` bytes, or on a Redis server, which has a limit of its own. Several
/// processes may share them. A folder is created if it does not exist; a server need not be there yet. Throws
/// UsageError for an invalid place or a folder that has files of others, StoreError if a folder cannot be created.
std::unique_ptr<Values> open_values(const Place& place, std::size_t most);

}  // namespace winnow::store
