// SPDX-License-Identifier: Apache-2.0
#include "winnow/kv_type.h"

#include <spdlog/fmt/fmt.h>

#include <array>

#include "base/kv_type_names.h"
#include "base/printable.h"
#include "winnow/error.h"

namespace winnow {

namespace {

constexpr std::array<std::string_view, 5> kNames = {"f32", "f16", "bf16", "q8_0", "q4_0"};  // indexed by ElementType

ElementType parse_element(std::string_view name, std::string_view text) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<ElementType>(i);
  }
  throw UsageError(fmt::format("unknown KV type '{}' in '{}': give {}, or two of them as KEY/VALUE", brief(name),
                               brief(text), fmt::join(kNames, ", ")));
}

}  // namespace

std::span<const std::string_view> kv_type_names() { return kNames; }

std::string_view name_of(ElementType type) { return kNames.at(static_cast<std::size_t>(type)); }

KvType KvType::parse(std::string_view text) {
  const auto slash = text.find('/');
  if (slash == std::string_view::npos) {
    const ElementType both = parse_element(text, text);
    return {both, both};
  }
  return {parse_element(text.substr(0, slash), text), parse_element(text.substr(slash + 1), text)};
}

std::string KvType::print() const {
  return key == value ? std::string(name_of(key)) : fmt::format("{}/{}", name_of(key), name_of(value));
}

}  // namespace winnow
