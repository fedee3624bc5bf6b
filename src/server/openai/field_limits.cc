// SPDX-License-Identifier: Apache-2.0
#include "server/openai/field_limits.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/printable.h"
#include "server/openai/errors.h"

namespace winnow::server {

namespace {

constexpr auto kBytes = SizeUnit::bytes;
constexpr auto kElements = SizeUnit::elements;
constexpr auto kMembers = SizeUnit::members;

constexpr std::array kLimits{
    FieldLimit{"messages", kElements, 10'000},
    FieldLimit{"messages[].content", kBytes, kWholeBody},
    FieldLimit{"messages[].content[].text", kBytes, kWholeBody},
    FieldLimit{"messages[].content[].thinking", kBytes, kWholeBody},
    FieldLimit{"messages[].content[].content", kBytes, kWholeBody},
    FieldLimit{"messages[].content[].content[].text", kBytes, kWholeBody},
    FieldLimit{"messages[].reasoning", kBytes, kWholeBody},
    FieldLimit{"messages[].reasoning_content", kBytes, kWholeBody},
    FieldLimit{"messages[].tool_calls", kElements, 128},
    FieldLimit{"messages[].tool_calls[].function.arguments", kBytes, kWholeBody},
    FieldLimit{"input", kBytes, kWholeBody},
    FieldLimit{"input", kElements, 10'000},
    FieldLimit{"input[].content", kBytes, kWholeBody},
    FieldLimit{"input[].content[].text", kBytes, kWholeBody},
    FieldLimit{"input[].content[].refusal", kBytes, kWholeBody},
    FieldLimit{"input[].summary[].text", kBytes, kWholeBody},
    FieldLimit{"input[].arguments", kBytes, kWholeBody},
    FieldLimit{"input[].output", kBytes, kWholeBody},
    FieldLimit{"input[].output[].text", kBytes, kWholeBody},
    FieldLimit{"instructions", kBytes, kWholeBody},
    FieldLimit{"system", kBytes, kWholeBody},
    FieldLimit{"system[].text", kBytes, kWholeBody},
    FieldLimit{"prompt", kBytes, kWholeBody},
    FieldLimit{"prompt", kElements, kWholeBody},
    FieldLimit{"prompt[]", kBytes, kWholeBody},
    FieldLimit{"input[]", kBytes, kWholeBody},
    FieldLimit{"input_prefix", kBytes, kWholeBody},
    FieldLimit{"input_suffix", kBytes, kWholeBody},
    FieldLimit{"input_extra[].text", kBytes, kWholeBody},
    FieldLimit{"content", kBytes, kWholeBody},
    FieldLimit{"tokens", kElements, kWholeBody},
    FieldLimit{"stop", kElements, 64},
    FieldLimit{"stop_sequences", kElements, 64},
    FieldLimit{"logit_bias", kMembers, 4096},
    FieldLimit{"metadata", kMembers, 16},
    FieldLimit{"tools", kElements, 128},
    FieldLimit{"tools[].function.description", kBytes, 65'536},
    FieldLimit{"tools[].description", kBytes, 65'536},
    FieldLimit{"guided_json", kBytes, 65'536},
    FieldLimit{"structured_outputs.json", kBytes, 65'536},
    FieldLimit{"winnow.documents", kElements, 256},
    FieldLimit{"text", kBytes, kWholeBody},
    FieldLimit{"tags", kElements, 64},
    FieldLimit{"*", kBytes, 1024},
    FieldLimit{"*", kElements, 1024},
    FieldLimit{"*", kMembers, 1024},
};

/// A path without the indices of elements.
std::string pattern_of(std::string_view path) {
  std::string out;
  bool is_index = false;
  for (const char c : path) {
    if (c == ']') is_index = false;
    if (!is_index) out += c;
    if (c == '[') is_index = true;
  }
  return out;
}

std::size_t most_of(std::string_view pattern, SizeUnit unit) {
  const auto row = std::ranges::find_if(kLimits, [&](const FieldLimit& limit) {
    return limit.unit == unit && (limit.field == pattern || limit.field == "*");
  });
  return row->most;
}

struct Size {
  std::size_t size;
  SizeUnit unit;
};

std::optional<Size> size_of(const Json& value) {
  if (value.is_string()) return Size{value.get_ref<const std::string&>().size(), kBytes};
  if (value.is_array()) return Size{value.size(), kElements};
  if (value.is_object()) return Size{value.size(), kMembers};
  return std::nullopt;
}

}  // namespace

const char* name_of(SizeUnit unit) {
  return unit == SizeUnit::bytes ? "bytes" : unit == SizeUnit::elements ? "elements" : "members";
}

std::span<const FieldLimit> field_limits() { return kLimits; }

std::string too_large(const Json& value, const std::string& path) {
  const auto is = size_of(value);
  if (!is) return {};
  const std::size_t most = most_of(pattern_of(path), is->unit);
  if (is->size <= most) return {};
  return fmt::format("{} has {} {}: at most {}", brief(path), is->size, name_of(is->unit), most);
}

void check_size(const Json& value, const std::string& path) {
  if (const auto why = too_large(value, path); !why.empty()) throw FieldError(path, why);
}

}  // namespace winnow::server
