// SPDX-License-Identifier: Apache-2.0
#include "chat/schema.h"

#include <json-schema-to-grammar.h>
#include <spdlog/fmt/fmt.h>

#include "base/printable.h"
#include "chat/bounds.h"
#include "chat/template.h"

namespace winnow::chat {

namespace {

void check_types(const std::string& name, const common_json& types) {
  std::set<std::string> seen;
  for (const auto& type : types) {
    if (type.is_string() && !seen.insert(type.get<std::string>()).second)
      throw TemplateError(fmt::format("{} names the type {} twice", name, brief(type.get<std::string>())));
  }
}

void check_all_types(const std::string& name, const common_json& schema) {
  if (schema.is_array()) {
    for (const auto& one : schema) check_all_types(name, one);
  }
  if (!schema.is_object()) return;
  for (const auto& [keyword, value] : schema.items()) {
    if (keyword == "type" && value.is_array()) check_types(name, value);
    check_all_types(name, value);
  }
}

}  // namespace

void check_schema(const std::string& name, const std::string& schema) {
  check_json(name, schema);
  bounded(name, "be read", schema.size(), [&] { check_all_types(name, common_json::parse(schema)); });
}

SchemaGrammar grammar_of(const std::string& schema) {
  SchemaGrammar out;
  check_schema("the schema", schema);
  bounded("the schema", "be turned into a grammar", schema.size(), [&] {
    const common_chat_schema_lenient lenient(out.left_out);
    out.grammar = json_schema_to_grammar(common_json::parse(schema));
  });
  return out;
}

std::string object_schema(const std::string& schema) {
  const auto read = common_json::parse(schema);
  if (read.is_boolean() && !read.get<bool>()) return R"({"not": {}})";
  return read.is_object() && !read.empty() ? schema : R"({"description": "anything"})";
}

}  // namespace winnow::chat
