// SPDX-License-Identifier: Apache-2.0
#include "server/schema/keywords.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "base/printable.h"
#include "server/openai/errors.h"

namespace winnow::server {

namespace {

/// What says nothing about a value.
const std::set<std::string, std::less<>> kNotes{"$comment", "$defs",       "$id",        "$schema",
                                                "default",  "definitions", "deprecated", "description",
                                                "examples", "readOnly",    "title",      "writeOnly"};
const std::set<std::string, std::less<>> kAlone{"$ref", "anyOf", "const", "enum"};
/// The type that a keyword is about; what is of another type is not touched by it.
const std::map<std::string, std::string, std::less<>> kAbout{{"additionalProperties", "object"},
                                                             {"exclusiveMaximum", "number"},
                                                             {"exclusiveMinimum", "number"},
                                                             {"items", "array"},
                                                             {"maxItems", "array"},
                                                             {"maxLength", "string"},
                                                             {"maximum", "number"},
                                                             {"minItems", "array"},
                                                             {"minLength", "string"},
                                                             {"minimum", "number"},
                                                             {"properties", "object"},
                                                             {"required", "object"}};
const std::vector<std::string> kTypes{"object", "array", "string", "number", "integer", "boolean", "null"};
constexpr std::array kBounds{"minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"};

/// A value of a schema, as a sentence shows it.
std::string shown(const Json& value) { return brief(value.is_structured() ? value.type_name() : text_of(value)); }

[[noreturn]] void refuse_schema(const std::string& path, const Json& value, const std::string& wanted) {
  throw FieldError(path, fmt::format("{} must be {}, and is {}", path, wanted, shown(value)));
}

void check_alone(const Json& schema, const std::string& keyword, const std::string& path) {
  const bool may_have_type = keyword == "const" || keyword == "enum";
  for (const auto& [other, value] : schema.items()) {
    if (other == keyword || kNotes.contains(other) || (may_have_type && other == "type")) continue;
    throw FieldError(fmt::format("{}.{}", path, other),
                     fmt::format("{}.{} does not go with {} beside it", path, brief(other), keyword));
  }
}

void check_type_name(const Json& type, const std::string& path) {
  if (!type.is_string() || std::ranges::count(kTypes, type.get<std::string>()) == 0)
    refuse_schema(path, type, fmt::format("one of {}", fmt::join(kTypes, ", ")));
}

/// A bound, as the number itself.
double bound(const Json& schema, const char* keyword, const std::string& path, double standard) {
  const auto found = schema.find(keyword);
  if (found == schema.end()) return standard;
  const std::string place = path + "." + keyword;
  if (!found->is_number() || std::abs(found->get<double>()) > static_cast<double>(kLargest))
    refuse_schema(place, *found, fmt::format("a number from {} to {}", -kLargest, kLargest));
  return found->get<double>();
}

}  // namespace

void check_keywords(const Json& schema, const std::string& path) {
  if (schema.is_boolean() && schema.get<bool>()) return;
  if (!schema.is_object()) refuse_schema(path, schema, "a schema that allows something: an object, or true");
  for (const auto& [keyword, value] : schema.items()) {
    if (kAlone.contains(keyword)) check_alone(schema, keyword, path);
    if (keyword != "type" && !kNotes.contains(keyword) && !kAlone.contains(keyword) && !kAbout.contains(keyword)) {
      const std::string place = path + "." + brief(keyword);
      throw FieldError(place, fmt::format("{} is a keyword that winnow cannot keep to: leave it out", place));
    }
  }
}

std::vector<std::string> types_of(const Json& schema, const std::string& path) {
  std::vector<std::string> out;
  if (!schema.is_object()) return {"value"};
  if (const auto type = schema.find("type"); type != schema.end()) {
    const std::string place = path + ".type";
    if (!type->is_array()) {
      check_type_name(*type, place);
      return {type->get<std::string>()};
    }
    for (const auto& one : *type) {
      check_type_name(one, place);
      if (std::ranges::count(out, one.get<std::string>()) > 0)
        throw FieldError(place, fmt::format("{} names {} twice", place, one.get<std::string>()));
      out.push_back(one.get<std::string>());
    }
    if (out.empty()) refuse_schema(place, *type, "a type, or a list of types");
    return out;
  }
  for (const auto& [keyword, value] : schema.items()) {
    const auto about = kAbout.find(keyword);
    if (about != kAbout.end() && std::ranges::count(out, about->second) == 0) out.push_back(about->second);
  }
  return out.empty() ? std::vector<std::string>{"value"} : out;
}

bool has_type(const Json& value, const std::vector<std::string>& types) {
  const bool is_whole =
      value.is_number_integer() || (value.is_number_float() && std::trunc(value.get<double>()) == value.get<double>());
  return std::ranges::any_of(types, [&](const auto& type) {
    return type == "value" || type == value.type_name() || (type == "integer" && is_whole);
  });
}

Times times_of(const Json& schema, const char* least, const char* most, const std::string& path) {
  const auto count = [&](const char* keyword) -> std::optional<std::int64_t> {
    const auto found = schema.find(keyword);
    if (found == schema.end()) return {};
    const bool is_count = found->is_number_unsigned() && found->get<std::uint64_t>() <= kMostTimes;
    if (!is_count) refuse_schema(path + "." + keyword, *found, fmt::format("a whole number from 0 to {}", kMostTimes));
    return found->get<std::int64_t>();
  };
  const Times out{count(least).value_or(0), count(most)};
  if (out.most && *out.most < out.least)
    throw FieldError(path + "." + most, fmt::format("{0}.{1} is {2}, and {0}.{3} is {4}: nothing has such a length",
                                                    path, most, *out.most, least, out.least));
  return out;
}

NumberRange range_of(const Json& schema, const std::string& path) {
  const auto types = types_of(schema, path);
  const bool is_whole = std::ranges::count(types, "number") == 0;
  const auto largest = static_cast<double>(kLargest);
  const double least = bound(schema, "minimum", path, -largest);
  const double above = bound(schema, "exclusiveMinimum", path, -largest - 1);
  const double most = bound(schema, "maximum", path, largest);
  const double below = bound(schema, "exclusiveMaximum", path, largest + 1);
  const double lower = std::max(least, above);
  const double upper = std::min(most, below);
  NumberRange out;
  out.least = static_cast<std::int64_t>(std::ceil(lower));
  out.most = static_cast<std::int64_t>(std::floor(upper));
  out.is_open_below = above >= least && std::ceil(lower) == lower;
  out.is_open_above = below <= most && std::floor(upper) == upper;
  const bool is_between = std::ceil(lower) != lower || std::floor(upper) != upper;
  if (!is_whole && is_between)
    throw FieldError(path, fmt::format("{} has a bound that is no whole number: winnow keeps to such bounds only where "
                                       "the type is integer",
                                       path));
  return out;
}

bool has_bounds(const Json& schema) {
  return std::ranges::any_of(kBounds, [&schema](const char* keyword) { return schema.contains(keyword); });
}

std::vector<std::string> texts_of(const Json& schema, const char* keyword, const std::string& path) {
  const auto found = schema.find(keyword);
  if (found == schema.end()) return {};
  const bool are_texts =
      found->is_array() && std::ranges::all_of(*found, [](const Json& one) { return one.is_string(); });
  if (!are_texts) refuse_schema(path + "." + keyword, *found, "a list of texts");
  return found->get<std::vector<std::string>>();
}

}  // namespace winnow::server
