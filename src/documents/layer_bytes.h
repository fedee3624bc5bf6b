// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/as_size.h"
#include "base/byte_stream.h"
#include "base/hash.h"
#include "documents/document.h"
#include "store/byte_store.h"

/// Bytes of one layer of a document (cache::save, docs/file-formats.md) and their checksums.
namespace winnow::documents {

/// Byte ranges in a plain layer: each lane has an entry for each token, in order.
class PlainLayer {
 public:
  PlainLayer(const engine::SavedHead& head, int layer);

  std::size_t size() const { return table_ + as_size(heads_) * lane_; }
  store::ByteRange extents() const { return {0, table_}; }
  store::ByteRange positions(int head) const { return {lane(head), lane(head) + keys_}; }
  store::ByteRange keys(int head, int begin, int end) const { return rows(lane(head) + keys_, key_row_, begin, end); }
  store::ByteRange values(int head, int begin, int end) const {
    return rows(lane(head) + values_, value_row_, begin, end);
  }
  std::size_t key_row() const { return key_row_; }
  std::size_t value_row() const { return value_row_; }

  /// The block that byte `at` belongs to, or -1 for the extents and positions, and the end of that stretch of bytes.
  struct Place {
    int block;
    std::size_t end;
  };
  Place place_of(std::size_t at) const;

 private:
  std::size_t lane(int head) const { return table_ + as_size(head) * lane_; }
  static store::ByteRange rows(std::size_t at, std::size_t row, int begin, int end) {
    return {at + row * as_size(begin), at + row * as_size(end)};
  }
  Place place_in_rows(std::size_t at, std::size_t first, std::size_t row) const;

  int heads_;
  int tokens_;
  std::size_t key_row_;
  std::size_t value_row_;
  std::size_t table_;   ///< bytes of the extents
  std::size_t keys_;    ///< offset of the keys in a lane
  std::size_t values_;  ///< offset of the values in a lane
  std::size_t lane_;    ///< bytes of a lane
};

/// Checksums of one layer.
struct LayerSums {
  std::uint64_t size = 0;   ///< bytes of the layer
  std::uint64_t table = 0;  ///< of the extents and positions; of all bytes in a compressed layer
  /// Checksums of each block, its keys and values in all KV heads; empty in a compressed layer.
  std::vector<std::uint64_t> blocks;

  bool operator==(const LayerSums&) const = default;
};

/// True if a document's layers are plain, with an entry for each token.
inline bool is_plain(const engine::SavedHead& head) { return head.options.spec == Spec(); }

/// A hasher for a block of a layer, or its table (-1). The seed depends on them, so that parts cannot be swapped.
Hasher hasher_of(int layer, int block);

/// Computes the checksums of a layer from its bytes in order, and passes the bytes on.
class SummingSink : public ByteSink {
 public:
  /// `to` may be null.
  SummingSink(const engine::SavedHead& head, int layer, ByteSink* to);
  void write(std::span<const std::byte> bytes) override;
  LayerSums sums() const;

 private:
  ByteSink* to_;
  std::size_t written_ = 0;
  std::vector<PlainLayer> plain_;  ///< empty for a compressed layer
  std::vector<Hasher> hashers_;    ///< the table's, then each block's
};

/// One lane of a compressed layer.
struct KeptLane {
  std::vector<std::int32_t> positions;
  store::ByteRange keys;
  store::ByteRange values;
};

/// Byte ranges of the lanes of a compressed layer. Throws InputError for invalid data.
std::vector<KeptLane> read_kept_lanes(const engine::SavedHead& head, int layer, std::span<const std::byte> bytes,
                                      const std::string& what);

/// Checks the extents and positions of a plain layer. `table`: extents() and the positions of each head.
void check_plain_table(const engine::SavedHead& head, int layer, std::span<const std::span<const std::byte>> table,
                       const std::string& what);

/// Checks a layer's bytes completely. Throws InputError that begins with `what`.
void check_layer(const engine::SavedHead& head, int layer, std::span<const std::byte> bytes, const LayerSums& expected,
                 const std::string& what);

}  // namespace winnow::documents
