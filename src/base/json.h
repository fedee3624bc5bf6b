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

/// Text that is no JSON, or JSON of too many levels or values, or with a member that comes twice.
class JsonError : public InputError {
 public:
  using InputError::InputError;
};

/// What nlohmann's error says, without the name and number that it begins with.
inline std::string reason_of(const nlohmann::json::exception& error) {
  const std::string text = error.what();
  const auto end = text.find("] ");
  return end == std::string::npos ? text : text.substr(end + 2);
}

/// Levels of lists and objects that JSON from outside may have: code that walks through values calls itself for each.
constexpr std::size_t kJsonLevels = 64;

/// How much of JSON from outside is taken, and kept.
struct JsonLimits {
  std::size_t kept = kJsonLevels;                                ///< levels; those below are checked, and stay empty
  std::size_t values = std::numeric_limits<std::size_t>::max();  ///< with members' names
};

/// Adds a member that an object does not have. An ordered object is a list, whose own functions look at all members.
template <class Json>
Json& add_member(Json& object, std::string name) {
  auto& members = object.template get_ref<typename Json::object_t&>();
  if constexpr (std::is_same_v<Json, nlohmann::ordered_json>) {
    return members.emplace_back(std::move(name), Json()).second;
  } else {
    return members[std::move(name)];
  }
}

/// Builds a value from what nlohmann's parser finds, in time by the bytes of its JSON, whatever they are. Texts are
/// moved into it, so that a long one is not copied. A value takes many times the bytes of its JSON.
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
      throw JsonError(fmt::format("its JSON has {} twice in one object", brief(name)));
    if (level_ <= limits_.kept) member_ = &add_member(*open_.back(), std::move(name));
    return true;
  }

  bool parse_error(std::size_t byte, const std::string& /*token*/, const nlohmann::detail::exception& /*e*/) override {
    throw JsonError(fmt::format("it is no JSON, or was cut, at byte {}", byte));
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
  std::vector<Json*> open_;                   ///< lists and objects that have begun and not ended
  Json* member_ = nullptr;                    ///< of the last of them, when it is an object
  std::vector<std::set<std::string>> names_;  ///< that the open objects have
};

/// Parses JSON from outside: a text, or bytes as they are read (TextLines). Throws JsonError, Interrupted (StopScope).
template <class Json, class Bytes>
Json parse_json(Bytes&& bytes, JsonLimits limits = {}) {
  JsonBuilder<Json> builder(limits);
  Json::sax_parse(bytes.begin(), bytes.end(), &builder);
  return builder.take();
}

}  // namespace winnow
