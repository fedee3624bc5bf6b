// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <spdlog/fmt/fmt.h>

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "winnow/error.h"

namespace winnow {

/// Text that is no JSON, or JSON of too many levels.
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

/// Builds a value from what nlohmann's parser finds. Texts are moved into it, so that a long one is not copied. Lists
/// and objects below `kept` levels are checked, and stay empty: a value takes many times the bytes of its JSON.
template <class Json>
class JsonBuilder : public nlohmann::json_sax<Json> {
 public:
  using Sax = nlohmann::json_sax<Json>;
  using String = typename Sax::string_t;

  explicit JsonBuilder(std::size_t kept) : kept_(kept) {}

  Json take() { return std::move(root_); }

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(typename Sax::number_integer_t value) override { return put(value); }
  bool number_unsigned(typename Sax::number_unsigned_t value) override { return put(value); }
  bool number_float(typename Sax::number_float_t value, const String& /*text*/) override { return put(value); }
  bool string(String& value) override { return put(std::move(value)); }
  bool binary(typename Sax::binary_t& value) override { return put(Json::binary(std::move(value))); }
  bool start_object(std::size_t /*size*/) override { return open(Json::object()); }
  bool start_array(std::size_t /*size*/) override { return open(Json::array()); }
  bool end_object() override { return shut(); }
  bool end_array() override { return shut(); }

  bool key(String& name) override {
    if (level_ > kept_) return true;
    member_ = &(*open_.back())[name];
    return true;
  }

  bool parse_error(std::size_t byte, const std::string& /*token*/, const nlohmann::detail::exception& /*e*/) override {
    throw JsonError(fmt::format("it is no JSON, or was cut, at byte {}", byte));
  }

 private:
  bool put(Json value) {
    if (level_ > kept_) return true;
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
    if (++level_ > kJsonLevels)
      throw JsonError(fmt::format("its JSON has more than {} levels of lists and objects", kJsonLevels));
    if (level_ <= kept_ + 1) open_.push_back(&place(std::move(value)));
    return true;
  }

  bool shut() {
    if (level_-- <= kept_ + 1) open_.pop_back();
    return true;
  }

  std::size_t kept_;
  std::size_t level_ = 0;
  Json root_;
  std::vector<Json*> open_;  ///< lists and objects that have begun and not ended
  Json* member_ = nullptr;   ///< of the last of them, when it is an object
};

/// Parses JSON from outside: a text, or bytes as they are read (TextLines). Throws JsonError. See JsonBuilder on
/// `kept`.
template <class Json, class Bytes>
Json parse_json(Bytes&& bytes, std::size_t kept = kJsonLevels) {
  JsonBuilder<Json> builder(kept);
  Json::sax_parse(bytes.begin(), bytes.end(), &builder);
  return builder.take();
}

}  // namespace winnow
