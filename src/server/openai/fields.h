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

/// Parses a body. Throws ApiError (400): no JSON, invalid UTF-8, more than 64 levels or 1,048,576 values and names, a
/// member that comes twice, no object, too many members.
Json parse_body(const std::string& body);

/// Reads the fields of a JSON object and knows which it was asked for. A field that is null is not there. All throw
/// FieldError, which names the field, for a value of another type, out of range, or larger than field_limits() says.
class Fields {
 public:
  /// Keeps a reference. `prefix` goes before names in errors, such as `winnow.`.
  explicit Fields(const Json& object, std::string prefix = {});

  std::optional<bool> boolean(std::string_view name);
  /// A field that is there and true.
  bool is_set(std::string_view name) { return boolean(name).value_or(false); }
  std::optional<double> number(std::string_view name, double least = -std::numeric_limits<double>::max(),
                               double most = std::numeric_limits<double>::max());
  std::optional<std::int64_t> integer(std::string_view name, std::int64_t least, std::int64_t most);
  std::optional<std::string> text(std::string_view name);
  /// One of some words.
  std::optional<std::string> word(std::string_view name, const std::vector<std::string>& known);
  /// Null when there is none. They live as long as the object.
  const Json* object(std::string_view name);
  const Json* list(std::string_view name);
  const Json* any(std::string_view name);

  /// Calls `read` with the fields of each object of a list, if there is one.
  void each(std::string_view name, const std::function<void(Fields&)>& read);

  /// Throw when there is none, too.
  std::string required_text(std::string_view name);
  const Json& required_object(std::string_view name);

  /// The field's name in errors.
  std::string path(std::string_view name) const { return prefix_ + std::string(name); }
  /// The names that nobody has asked for.
  std::vector<std::string> unread() const;
  /// All names that somebody has asked for.
  std::vector<std::string> known() const { return {asked_.begin(), asked_.end()}; }

 private:
  const Json& object_;
  std::string prefix_;
  std::set<std::string, std::less<>> asked_;
};

/// An element of a list, or another value whose place is known. Throw FieldError.
std::int64_t integer_at(const Json& value, const std::string& path, std::int64_t least, std::int64_t most);
double number_at(const Json& value, const std::string& path, double least, double most);
const std::string& text_at(const Json& value, const std::string& path);
/// Throws FieldError unless it is an object.
const Json& object_at(const Json& value, const std::string& path);

}  // namespace winnow::server
