// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "cache/sections.h"
#include "documents/layer_bytes.h"
#include "winnow/documents.h"

/// Records of a store of documents: docs/file-formats.md. Keys of records are `format`, n/NAME and c/ID; keys of values
/// contain the number under which a document was written.
namespace winnow::documents {

inline constexpr std::uint32_t kDocumentVersion = 1;
/// The format of documents in files.
inline constexpr cache::FileFormat kDocumentFormat{
    {'w', 'i', 'n', 'n', 'o', 'w', 'd', 'c'}, kDocumentVersion, "an exported document"};
inline constexpr std::uint32_t kNameVersion = 2;  ///< of names; those of version 1 are read, too

inline const std::string kFormatKey = "format";
inline const std::string kNamePrefix = "n/";
inline const std::string kContentPrefix = "c/";

/// Identity of a document's content, 32 hexadecimal digits: a hash of the model, the cache options and the tokens.
std::string content_id(const engine::ModelIdentity& model, const CacheOptions& options, std::span<const Token> tokens);

/// The content that a name refers to.
struct NameRecord {
  std::string id;
  std::vector<std::string> tags;
  std::int64_t added_ms = 0;  ///< since 1970

  /// The checksum covers the name, too.
  store::Bytes bytes(const std::string& name) const;
  /// Throws InputError; `what` begins it.
  static NameRecord read(const std::string& name, std::span<const std::byte> bytes, const std::string& what);
};

/// Facts about stored content that are known without its head.
struct ContentRecord {
  std::uint64_t number = 0;  ///< random; part of the keys of its values
  std::string spec;
  std::string budget;  ///< empty: none
  std::string kv_type;
  std::string model_name;
  std::string model_arch;
  std::uint64_t model_file = 0;
  std::int32_t layers = 0;
  std::int32_t tokens = 0;
  std::uint64_t value_bytes = 0;
  std::int64_t added_ms = 0;
  std::int64_t used_ms = 0;

  store::Bytes bytes() const;
  static ContentRecord read(std::span<const std::byte> bytes, const std::string& what);

  std::string head_key() const;
  std::string layer_key(int layer) const;
};

ContentRecord record_of(const engine::SavedHead& head, std::uint64_t number, std::uint64_t value_bytes,
                        std::int64_t now_ms);

/// The value that holds a head, with the checksums of the layers and one of its own.
struct StoredHead {
  DocumentHead head;
  std::vector<LayerSums> sums;  ///< [layer]

  store::Bytes bytes() const;
  static StoredHead read(std::span<const std::byte> bytes, const std::string& what);
};

/// A random number under which no process or machine has written before.
std::uint64_t new_number();

}  // namespace winnow::documents
