// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_stream.h"
#include "engine/layer_bytes.h"
#include "engine/session_impl.h"

/// Keys and values of texts, and observers' states, as values of a store outside of memory (docs/file-formats.md).
namespace winnow::engine {

/// Hash of everything that some bytes depend on.
struct TextKey {
  std::uint64_t first = 0;
  std::uint64_t second = 0;

  /// 32 hexadecimal digits.
  std::string print() const;
  bool operator==(const TextKey&) const = default;
};

/// Hashes of what values depend on besides tokens.
struct SessionKey {
  TextKey rows;         ///< of keys and values: the model, options of the session, kernels and processor
  TextKey calibration;  ///< states may also depend on the calibration
};

/// Identifies a value.
struct TextName {
  TextKey root;  ///< with which the chain of its text begins
  TextKey key;
  std::string state;          ///< name of an observer's state; empty: keys and values
  std::vector<Token> tokens;  ///< of its block, or of the last block before the state
};

/// Reads the model's file when it is called for the first time.
SessionKey key_of(const Session::Impl& session);
/// Names of the keys and values of a text's whole blocks.
std::vector<TextName> names_of(const SessionKey& session, std::string_view owner, std::span<const Token> text);
/// Name of a state after a block.
TextName name_of_state(const SessionKey& session, const TextName& block, const std::string& state);

/// Bytes of a value, of which the layers have these sizes.
std::size_t value_bytes(const TextName& name, std::span<const std::size_t> sizes);
/// Bytes before those of the layers.
std::size_t value_head_bytes(const TextName& name, std::span<const std::size_t> sizes);
/// These bytes: what the value is, and the checksum of each layer.
std::vector<std::byte> value_head(const TextName& name, std::span<const std::size_t> sizes,
                                  std::span<const std::uint64_t> sums);
/// The checksums of a value that begins with these bytes. Nullopt if it has another name or other sizes, or if these
/// bytes are damaged.
std::optional<std::vector<std::uint64_t>> sums_of(std::span<const std::byte> value, const TextName& name,
                                                  std::span<const std::size_t> sizes);
void write_value(const TextName& name, const LayerBytes& layers, ByteSink& to);
/// Fills bytes of the right sizes. Returns false if the value has another name or other sizes, or is damaged.
bool read_value(std::span<const std::byte> value, const TextName& name, LayerBytes& layers);

}  // namespace winnow::engine
