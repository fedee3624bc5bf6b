// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <vector>

#include "engine/text_value.h"
#include "store/values.h"

namespace winnow::engine {

/// Rows that were in a store when a reading began cannot be read any more. The reading begins again without them.
class TextLost : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Keys and values of a block that stay in a store, since the text is larger than the memory for texts. They are
/// written and read one layer at a time. Not thread-safe.
class FiledRows {
 public:
  enum class Found : std::uint8_t { good, missing, damaged };

  /// `sizes`: bytes of each layer. REQUIRES: a store that has parts.
  FiledRows(std::shared_ptr<store::Values> values, TextName name, std::vector<std::size_t> sizes);

  /// Begins to write a new value. Returns false if there is no room for it. Throws StoreError, like write() and
  /// finished().
  bool begin();
  void write(int layer, std::span<const std::byte> rows);
  /// The value, to be stored while this object lives; after the first call, it is only used. For the thread that stores
  /// it. REQUIRES: all layers, for a new value.
  store::NewValue finished();
  bool is_new() const { return part_ != nullptr; }

  /// Reads and checks the head of a stored value: the rows are checked when they are read. Throws StoreError.
  Found open();
  /// Rows of a layer, as one part. Throws TextLost if they are gone or damaged.
  store::Lease read(int layer) const;
  /// True after read() has failed.
  bool is_lost() const { return is_lost_; }

  std::span<const std::size_t> sizes() const { return sizes_; }

 private:
  /// Place of a layer in the value.
  std::size_t place_of(int layer) const;
  std::optional<store::Lease> read_layer(int layer) const;

  std::shared_ptr<store::Values> values_;
  TextName name_;
  std::vector<std::size_t> sizes_;
  std::size_t bytes_;                ///< of the value
  std::vector<std::uint64_t> sums_;  ///< checksum of each layer
  std::unique_ptr<store::ValuePart> part_;
  bool is_finished_ = false;
  mutable bool is_lost_ = false;
};

}  // namespace winnow::engine
