// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "server/json.h"

namespace winnow::server {

/// Parses a body. Throws ApiError (400) for invalid JSON or UTF-8, more than 64 levels or 1,048,576 values and names, a
/// duplicate member, too many members, or if it is not an object.
Json parse_body(const std::string& body);

/// Reads the fields of a JSON object, and records their names. A null field counts as absent. All functions throw
/// FieldError, naming the field, for a value of the wrong type, out of range, or larger than field_limits() allows.
class Fields {
 public:
  /// Stores a reference. `prefix`, such as `winnow.`, precedes names in errors.
  explicit Fields(const Json& object, std::string prefix = {});

  std::optional<bool> boolean(std::string_view name);
  /// True if the field is present and true.
  bool is_set(std::string_view name) { return boolean(name).value_or(false); }
  std::optional<double> number(std::string_view name, double least = -std::numeric_limits<double>::max(),
                               double most = std::numeric_limits<double>::max());
  std::optional<std::int64_t> integer(std::string_view name, std::int64_t least, std::int64_t most);
  std::optional<std::string> text(std::string_view name);
  /// One of the known words.
  std::optional<std::string> word(std::string_view name, const std::vector<std::string>& known);
  /// Null if absent. It lives as long as the object.
  const Json* object(std::string_view name);
  const Json* list(std::string_view name);
  const Json* any(std::string_view name);

  /// Calls `read` with the fields of each object of a list, if there is one.
  void each(std::string_view name, const std::function<void(Fields&)>& read);

  /// These also throw if the field is absent.
  std::string required_text(std::string_view name);
  const Json& required_object(std::string_view name);

  /// The field's name in errors.
  std::string path(std::string_view name) const { return prefix_ + std::string(name); }
  /// Names of fields that were never asked for.
  std::vector<std::string> unread() const;
  /// All names that were asked for.
  std::vector<std::string> known() const { return {asked_.begin(), asked_.end()}; }

 private:
  const Json& object_;
  std::string prefix_;
  std::set<std::string, std::less<>> asked_;
};

/// For elements of lists and other values whose path is known. Both throw FieldError.
std::int64_t integer_at(const Json& value, const std::string& path, std::int64_t least, std::int64_t most);
double number_at(const Json& value, const std::string& path, double least, double most);
const std::string& text_at(const Json& value, const std::string& path);
/// Throws FieldError unless it is an object.
const Json& object_at(const Json& value, const std::string& path);

}  // namespace winnow::server
