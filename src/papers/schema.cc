// SPDX-License-Identifier: Apache-2.0
#include "papers/schema.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <map>
#include <optional>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>
#include <vector>

#include "base/printable.h"
#include "papers/library.h"
#include "policy/suggest.h"

namespace winnow::papers {

namespace {

using Adapter = valijson::adapters::NlohmannJsonAdapter;
using SchemaError = valijson::ValidationResults::Error;

struct Schema {
  nlohmann::json json;
  valijson::Schema parsed;

  Schema() : json(nlohmann::json::parse(schema_text())) {
    valijson::SchemaParser().populateSchema(Adapter(json), parsed);
  }
};

const Schema& schema() {
  static const auto* const out = new Schema;  // never destroyed
  return *out;
}

/// A part of the schema, with references resolved.
const nlohmann::json& meant(const nlohmann::json& part) {
  return part.contains("$ref")
             ? schema().json.at(nlohmann::json::json_pointer(part["$ref"].get<std::string>().substr(1)))
             : part;
}

/// A part of a recipe, with its rules in the schema.
struct Place {
  std::string name;  ///< measures[0].tasks
  const nlohmann::json* value;
  const nlohmann::json* rules;
};

/// The place of an error, "<root>", "[measures]", "[0]".
Place place_of(const std::vector<std::string>& context, const nlohmann::json& recipe) {
  Place out{"", &recipe, &schema().json};
  for (std::size_t i = 1; i < context.size(); ++i) {
    const auto step = context[i].substr(1, context[i].size() - 2);
    if (out.value->is_array()) {
      out = {out.name + context[i], &out.value->at(std::stoul(step)), &meant(out.rules->at("items"))};
    } else {
      const bool is_named = out.rules->contains("properties") && out.rules->at("properties").contains(step);
      const auto& rules = is_named ? out.rules->at("properties").at(step) : out.rules->at("additionalProperties");
      out = {out.name.empty() ? step : out.name + "." + step, &out.value->at(step), &meant(rules)};
    }
  }
  return out;
}

std::vector<std::string> property_names(const nlohmann::json& object) {
  std::vector<std::string> out;
  for (const auto& [name, part] : object.items()) out.push_back(name);
  return out;
}

/// The missing or unknown fields of an object; "" if there are none, or the value is not an object.
std::string wrong_field(const nlohmann::json& value, const nlohmann::json& rules) {
  if (!value.is_object()) return {};
  const auto known = property_names(rules.value("properties", nlohmann::json::object()));
  const bool is_open = rules.value("additionalProperties", nlohmann::json(true)) != nlohmann::json(false);
  for (const auto& [name, part] : value.items()) {
    if (!is_open && std::find(known.begin(), known.end(), name) == known.end())
      return fmt::format("there is no field {}: {}", brief(name), policy::suggest(name, known));
  }
  for (const auto& name : rules.value("required", std::vector<std::string>())) {
    if (!value.contains(name)) return fmt::format("the field {} is missing", name);
  }
  return {};
}

std::string issue_in_words(const nlohmann::json& type) {
  static const std::map<std::string, std::string> words = {
      {"object", "an object"}, {"array", "a list"},           {"string", "a text"},        {"number", "a number"},
      {"null", "null"},        {"integer", "a whole number"}, {"boolean", "true or false"}};
  std::vector<std::string> out;
  for (const auto& one : type.is_array() ? type : nlohmann::json::array({type}))
    out.push_back(words.at(one.get<std::string>()));
  return fmt::format("{}", fmt::join(out, " or "));
}

/// Limits of a value of the right type.
std::string limits_in_words(const nlohmann::json& rules) {
  std::vector<std::string> out;
  const auto add = [&](const char* rule, const char* words) {
    if (rules.contains(rule)) out.push_back(fmt::format("{}{}", words, rules[rule].dump()));
  };
  add("minimum", "at least ");
  add("maximum", "at most ");
  add("exclusiveMinimum", "more than ");
  add("pattern", "a text of the form ");
  if (rules.contains("minLength")) out.emplace_back("a non-empty text");
  return fmt::format("{}", fmt::join(out, " and "));
}

/// Why the value violates its rules. valijson finds the broken rule, but describes it for readers who know JSON Schema.
std::string why(const Place& at, const std::string& description) {
  const auto& rules = *at.rules;
  if (rules.contains("enum")) {
    const auto given = at.value->is_string() ? at.value->get<std::string>() : at.value->dump();
    return fmt::format("there is no {}: {}", brief(given),
                       policy::suggest(given, rules["enum"].get<std::vector<std::string>>()));
  }
  if (description.find("'type'") != std::string::npos) return "must be " + issue_in_words(rules.at("type"));
  if (auto field = wrong_field(*at.value, rules); !field.empty()) return field;
  const auto limits = limits_in_words(rules);
  return limits.empty() ? description : "must be " + limits;
}

}  // namespace

std::string violation(const nlohmann::json& recipe) {
  valijson::ValidationResults results;
  const Adapter adapter(recipe);
  if (valijson::Validator().validate(schema().parsed, adapter, &results)) return {};
  // Each level repeats that something below it is wrong. The deepest error is the informative one.
  std::optional<SchemaError> deepest;
  for (SchemaError error; results.popError(error);) {
    if (!deepest || error.context.size() > deepest->context.size()) deepest = error;
  }
  if (!deepest) return "it does not follow the schema";
  const auto place = place_of(deepest->context, recipe);
  const auto reason = why(place, deepest->description);
  return place.name.empty() ? reason : place.name + ": " + reason;
}

}  // namespace winnow::papers
