// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <spdlog/fmt/fmt.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "base/stop_scope.h"
#include "winnow/error.h"

namespace winnow {

/// Text that is not JSON, or JSON with too many levels or values, or with a repeated member.
class JsonError : public InputError {
 public:
  using InputError::InputError;
};

/// The text of nlohmann's error without its name and number.
inline std::string reason_of(const nlohmann::json::exception& error) {
  const std::string text = error.what();
  const auto end = text.find("] ");
  return end == std::string::npos ? text : text.substr(end + 2);
}

/// Limit of nested lists and objects in JSON from outside: code that walks through values is recursive.
constexpr std::size_t kJsonLevels = 64;

/// Limits of JSON from outside.
struct JsonLimits {
  std::size_t kept = kJsonLevels;                                ///< levels to keep; deeper ones are checked, and left
                                                                 ///< empty
  std::size_t values = std::numeric_limits<std::size_t>::max();  ///< values and member names
};

/// Adds a new member to an object. An ordered object is a list, and its own functions search all members.
template <class Json>
Json& add_member(Json& object, std::string name) {
  auto& members = object.template get_ref<typename Json::object_t&>();
  if constexpr (std::is_same_v<Json, nlohmann::ordered_json>) {
    return members.emplace_back(std::move(name), Json()).second;
  } else {
    return members[std::move(name)];
  }
}

/// Builds a value from the events of nlohmann's parser, in time linear in the bytes of any JSON. Moves texts, so long
/// ones are not copied. A value takes many times the bytes of its JSON.
template <class Json>
class JsonBuilder : public nlohmann::json_sax<Json> {
 public:
  using Sax = nlohmann::json_sax<Json>;
  using String = typename Sax::string_t;

  explicit JsonBuilder(JsonLimits limits) : limits_(limits) {}

  Json take() { return std::move(root_); }

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(typename Sax::number_integer_t value) override { return put(value); }
  bool number_unsigned(typename Sax::number_unsigned_t value) override { return put(value); }
  bool number_float(typename Sax::number_float_t value, const String& /*text*/) override { return put(value); }
  bool string(String& value) override { return put(std::move(value)); }
  bool binary(typename Sax::binary_t& value) override { return put(Json::binary(std::move(value))); }
  bool start_object(std::size_t /*size*/) override {
    names_.emplace_back();
    return open(Json::object());
  }
  bool start_array(std::size_t /*size*/) override { return open(Json::array()); }
  bool end_object() override {
    names_.pop_back();
    return shut();
  }
  bool end_array() override { return shut(); }

  bool key(String& name) override {
    count();
    if (!names_.back().insert(name).second)
      throw JsonError(fmt::format("its JSON has the name {} twice in one object", brief(name)));
    if (level_ <= limits_.kept) member_ = &add_member(*open_.back(), std::move(name));
    return true;
  }

  bool parse_error(std::size_t byte, const std::string& /*token*/, const nlohmann::detail::exception& /*e*/) override {
    throw JsonError(fmt::format("it is not valid JSON, or was cut off, at byte {}", byte));
  }

 private:
  void count() {
    StopScope::check();
    if (++values_ > limits_.values)
      throw JsonError(fmt::format("its JSON has more than {} values and names", limits_.values));
  }

  bool put(Json value) {
    count();
    if (level_ > limits_.kept) return true;
    place(std::move(value));
    return true;
  }

  Json& place(Json value) {
    if (open_.empty()) return root_ = std::move(value);
    if (!open_.back()->is_array()) return *member_ = std::move(value);
    open_.back()->push_back(std::move(value));
    return open_.back()->back();
  }

  bool open(Json value) {
    count();
    if (++level_ > kJsonLevels)
      throw JsonError(fmt::format("its JSON has more than {} levels of lists and objects", kJsonLevels));
    if (level_ <= limits_.kept + 1) open_.push_back(&place(std::move(value)));
    return true;
  }

  bool shut() {
    if (level_-- <= limits_.kept + 1) open_.pop_back();
    return true;
  }

  JsonLimits limits_;
  std::size_t level_ = 0;
  std::size_t values_ = 0;
  Json root_;
  std::vector<Json*> open_;                   ///< unfinished lists and objects
  Json* member_ = nullptr;                    ///< current member if the last of them is an object
  std::vector<std::set<std::string>> names_;  ///< member names of the open objects
};

/// Parses JSON from outside: a text, or bytes while they are read (TextLines). Throws JsonError, Interrupted
/// (StopScope).
template <class Json, class Bytes>
Json parse_json(Bytes&& bytes, JsonLimits limits = {}) {
  JsonBuilder<Json> builder(limits);
  Json::sax_parse(bytes.begin(), bytes.end(), &builder);
  return builder.take();
}

}  // namespace winnow
