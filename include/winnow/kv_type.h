// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "winnow/export.h"

namespace winnow {

/// Encoding of an element of stored keys or values. The enumerators are stored in files: never renumber.
enum class ElementType : std::uint8_t { f32 = 0, f16 = 1, bf16 = 2, q8_0 = 3, q4_0 = 4 };

/// Encoding of a cache: keys and values may differ.
struct WINNOW_EXPORT KvType {
  ElementType key = ElementType::f16;
  ElementType value = ElementType::f16;

  /// Parses `f16` or `q8_0/f16` (key type, value type). Throws UsageError that lists the known types.
  static KvType parse(std::string_view text);

  /// The shortest text that parse() accepts for this type: `f16`, or `q8_0/f16` if key and value differ.
  std::string print() const;

  bool operator==(const KvType&) const = default;
};

/// Name of an element type, as in `--kv-type`.
WINNOW_EXPORT std::string_view name_of(ElementType type);

}  // namespace winnow
