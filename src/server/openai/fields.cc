// SPDX-License-Identifier: Apache-2.0
#include "server/openai/fields.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/json.h"
#include "base/printable.h"
#include "server/openai/errors.h"
#include "server/openai/field_limits.h"

namespace winnow::server {

namespace {

/// Maximum number of values in a body: a value takes at least 16 bytes of memory, but can be two bytes of JSON.
constexpr std::size_t kMostValues = std::size_t{1} << 20;

std::string brief_of(const Json& value) {
  return brief(value.is_structured() ? value.type_name() : value.dump(-1, ' ', false, Json::error_handler_t::replace));
}

[[noreturn]] void refuse(const std::string& path, const Json& value, const std::string& wanted) {
  throw FieldError(path, fmt::format("{} must be {}, not {}", brief(path), wanted, brief_of(value)));
}

/// A whole number, which JSON may also write as 3.0.
std::optional<std::int64_t> whole(const Json& value) {
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > std::numeric_limits<std::int64_t>::max()) return {};
  if (value.is_number_integer()) return value.get<std::int64_t>();
  constexpr double kExact = 9007199254740992.0;  // 2^53
  if (!value.is_number_float() || !(std::abs(value.get<double>()) <= kExact)) return {};
  const auto out = static_cast<std::int64_t>(value.get<double>());
  return static_cast<double>(out) == value.get<double>() ? std::optional(out) : std::nullopt;
}

const std::string& string_in(const Json& value, const std::string& path) {
  if (!value.is_string()) refuse(path, value, "a string");
  return value.get_ref<const std::string&>();
}

const Json& object_in(const Json& value, const std::string& path) {
  if (!value.is_object()) refuse(path, value, "an object");
  return value;
}

}  // namespace

Json parse_body(const std::string& body) {
  try {
    auto out = parse_json<Json>(body, {.values = kMostValues});
    if (!out.is_object()) throw ApiError(400, fmt::format("the body must be a JSON object, not {}", brief_of(out)));
    if (const auto why = too_large(out, "the body"); !why.empty()) throw ApiError(400, why);
    return out;
  } catch (const JsonError& error) {
    throw ApiError(400, fmt::format("the body cannot be read: {}", error.what()));
  }
}

Fields::Fields(const Json& object, std::string prefix) : object_(object), prefix_(std::move(prefix)) {}

const Json* Fields::any(std::string_view name) {
  asked_.emplace(name);
  const auto found = object_.find(std::string(name));
  if (found == object_.end() || found->is_null()) return nullptr;
  check_size(*found, path(name));
  return &*found;
}

std::optional<bool> Fields::boolean(std::string_view name) {
  const Json* const value = any(name);
  if (value == nullptr) return {};
  if (!value->is_boolean()) refuse(path(name), *value, "true or false");
  return value->get<bool>();
}

std::optional<double> Fields::number(std::string_view name, double least, double most) {
  const Json* const value = any(name);
  return value == nullptr ? std::nullopt : std::optional(number_at(*value, path(name), least, most));
}

std::optional<std::int64_t> Fields::integer(std::string_view name, std::int64_t least, std::int64_t most) {
  const Json* const value = any(name);
  return value == nullptr ? std::nullopt : std::optional(integer_at(*value, path(name), least, most));
}

std::optional<std::string> Fields::text(std::string_view name) {
  const Json* const value = any(name);
  return value == nullptr ? std::nullopt : std::optional(string_in(*value, path(name)));
}

std::optional<std::string> Fields::word(std::string_view name, const std::vector<std::string>& known) {
  auto out = text(name);
  if (out && std::ranges::count(known, *out) == 0)
    refuse(path(name), *any(name), fmt::format("one of {}", fmt::join(known, ", ")));
  return out;
}

const Json* Fields::object(std::string_view name) {
  const Json* const value = any(name);
  return value == nullptr ? nullptr : &object_in(*value, path(name));
}

const Json* Fields::list(std::string_view name) {
  const Json* const value = any(name);
  if (value != nullptr && !value->is_array()) refuse(path(name), *value, "a list");
  return value;
}

void Fields::each(std::string_view name, const std::function<void(Fields&)>& read) {
  const Json* const objects = list(name);
  for (std::size_t i = 0; objects != nullptr && i < objects->size(); ++i) {
    const auto place = fmt::format("{}[{}]", path(name), i);
    Fields fields(object_at((*objects)[i], place), place + ".");
    read(fields);
  }
}

std::string Fields::required_text(std::string_view name) {
  auto out = text(name);
  if (!out) throw FieldError(path(name), path(name) + " is missing");
  return std::move(*out);
}

const Json& Fields::required_object(std::string_view name) {
  const Json* const out = object(name);
  if (out == nullptr) throw FieldError(path(name), path(name) + " is missing");
  return *out;
}

std::vector<std::string> Fields::unread() const {
  std::vector<std::string> out;
  for (const auto& item : object_.items()) {
    if (!asked_.contains(item.key())) out.push_back(item.key());
  }
  return out;
}

std::int64_t integer_at(const Json& value, const std::string& path, std::int64_t least, std::int64_t most) {
  const auto out = whole(value);
  if (!out || *out < least || *out > most)
    refuse(path, value, fmt::format("a whole number from {} to {}", least, most));
  return *out;
}

double number_at(const Json& value, const std::string& path, double least, double most) {
  if (!value.is_number()) refuse(path, value, "a number");
  const auto out = value.get<double>();
  if (out < least || out > most) refuse(path, value, fmt::format("from {} to {}", least, most));
  return out;
}

const std::string& text_at(const Json& value, const std::string& path) {
  check_size(value, path);
  return string_in(value, path);
}

const Json& object_at(const Json& value, const std::string& path) {
  check_size(value, path);
  return object_in(value, path);
}

}  // namespace winnow::server
