// SPDX-License-Identifier: Apache-2.0
#include "papers/schema.h"

#include <spdlog/fmt/fmt.h>

#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

#include "papers/library.h"

namespace winnow::papers {

namespace {

using Adapter = valijson::adapters::NlohmannJsonAdapter;

const valijson::Schema& schema() {
  static const auto* const out = [] {
    auto* const parsed = new valijson::Schema;  // lives as long as the process
    const auto json = nlohmann::json::parse(schema_text());
    valijson::SchemaParser().populateSchema(Adapter(json), *parsed);
    return parsed;
  }();
  return *out;
}

/// "<root>", "[figures]", "[0]" -> figures[0]
std::string place_of(const std::vector<std::string>& context) {
  std::string out;
  for (std::size_t i = 1; i < context.size(); ++i) {
    const bool is_index = context[i].find_first_not_of("[]0123456789") == std::string::npos;
    const auto name = context[i].substr(1, context[i].size() - 2);
    out += is_index ? context[i] : (out.empty() ? "" : ".") + name;
  }
  return out;
}

std::string shown(const valijson::ValidationResults::Error& error) {
  const auto place = place_of(error.context);
  std::string what = error.description;
  while (what.ends_with('.')) what.pop_back();
  return place.empty() ? what : place + ": " + what;
}

}  // namespace

std::string violation(const nlohmann::json& recipe) {
  valijson::ValidationResults results;
  const Adapter adapter(recipe);
  if (valijson::Validator().validate(schema(), adapter, &results)) return {};
  // Each level says again that something below it is wrong. The deepest says what.
  std::optional<valijson::ValidationResults::Error> deepest;
  for (valijson::ValidationResults::Error error; results.popError(error);) {
    if (!deepest || error.context.size() > deepest->context.size()) deepest = error;
  }
  return deepest ? shown(*deepest) : "it is not as the schema says";
}

}  // namespace winnow::papers
