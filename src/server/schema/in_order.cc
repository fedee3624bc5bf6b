// SPDX-License-Identifier: Apache-2.0
#include "server/schema/in_order.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "base/json.h"
#include "server/openai/errors.h"

namespace winnow::server {

namespace {

/// Finding a member of an ordered object takes time by their number.
constexpr std::size_t kMostMembers = 5000;

/// Passes on to a builder only some members of the outermost object.
class Chosen : public nlohmann::json_sax<Json> {
 public:
  explicit Chosen(const std::vector<std::string>& names) : names_(names), builder_({}) {}

  Json take() { return builder_.take(); }

  bool null() override { return !is_chosen_ || builder_.null(); }
  bool boolean(bool value) override { return !is_chosen_ || builder_.boolean(value); }
  bool number_integer(number_integer_t value) override { return !is_chosen_ || builder_.number_integer(value); }
  bool number_unsigned(number_unsigned_t value) override { return !is_chosen_ || builder_.number_unsigned(value); }
  bool number_float(number_float_t value, const string_t& text) override {
    return !is_chosen_ || builder_.number_float(value, text);
  }
  bool string(string_t& value) override { return !is_chosen_ || builder_.string(value); }
  bool binary(binary_t& value) override { return !is_chosen_ || builder_.binary(value); }
  bool start_object(std::size_t size) override { return (level_++ > 0 && !is_chosen_) || builder_.start_object(size); }
  bool start_array(std::size_t size) override { return (level_++ > 0 && !is_chosen_) || builder_.start_array(size); }
  bool end_object() override { return (--level_ > 0 && !is_chosen_) || builder_.end_object(); }
  bool end_array() override { return (--level_ > 0 && !is_chosen_) || builder_.end_array(); }
  bool key(string_t& name) override {
    if (level_ == 1) is_chosen_ = std::ranges::count(names_, name) > 0;
    return !is_chosen_ || builder_.key(name);
  }
  bool parse_error(std::size_t byte, const std::string& token, const nlohmann::detail::exception& error) override {
    return builder_.parse_error(byte, token, error);
  }

 private:
  const std::vector<std::string>& names_;
  JsonBuilder<Json> builder_;
  int level_ = 0;
  bool is_chosen_ = false;
};

void check_members(const RequestJson& value, const std::string& field) {
  if (value.is_object() && value.size() > kMostMembers)
    throw FieldError(field,
                     fmt::format("{} has an object of {} members: at most {}", field, value.size(), kMostMembers));
  if (value.is_structured()) std::ranges::for_each(value, [&](const auto& inner) { check_members(inner, field); });
}

}  // namespace

Json fields_in_order(const std::string& body, const RequestJson& parsed, const std::vector<std::string>& names) {
  for (const auto& name : names) {
    if (const auto found = parsed.find(name); found != parsed.end()) check_members(*found, name);
  }
  Chosen chosen(names);
  Json::sax_parse(body, &chosen);
  return chosen.take();
}

}  // namespace winnow::server
