// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_stream.h"
#include "engine/session_impl.h"
#include "engine/text_store.h"

/// Text blocks as values of a store outside of memory (docs/file-formats.md).
namespace winnow::engine {

/// Hash of everything that a block's keys and values depend on, and of the owner.
struct TextKey {
  std::uint64_t first = 0;
  std::uint64_t second = 0;

  /// 32 hexadecimal digits.
  std::string print() const;
  bool operator==(const TextKey&) const = default;
};

/// Key of a block, and the key with which its chain begins.
struct TextName {
  TextKey root;
  TextKey key;
};

/// Hash of what keys and values depend on besides tokens: the model, options of the session, kernels and processor.
/// Reads the model's file when it is called for the first time.
TextKey key_of(const Session::Impl& session);
/// Names of the whole blocks of a text.
std::vector<TextName> names_of(const TextKey& session, std::string_view owner, std::span<const Token> text);

/// Bytes of a block's value.
std::size_t value_bytes(const TextBlock& block);
void write_value(const TextName& name, const TextBlock& block, ByteSink& to);
/// Fills a block that has the right tokens. Returns false if the value is another block's or is damaged.
bool read_value(std::span<const std::byte> value, const TextName& name, TextBlock& block);

}  // namespace winnow::engine
