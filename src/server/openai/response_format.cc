// SPDX-License-Identifier: Apache-2.0
#include "server/openai/response_format.h"

#include "server/openai/errors.h"
#include "server/schema/in_order.h"
#include "server/schema/schema.h"

namespace winnow::server {

namespace {

constexpr const char* kField = "response_format";

/// Its name and description are for people, and every schema is kept to strictly.
void check_about_schema(Fields& about) {
  about.text("name");
  about.text("description");
  about.boolean("strict");
  if (about.any("schema") == nullptr) throw FieldError(about.path("schema"), about.path("schema") + " is missing");
}

}  // namespace

std::string read_response_format(Fields& fields, const RequestJson& request, const std::string& body) {
  const RequestJson* const format = fields.object(kField);
  if (format == nullptr) return "";
  Fields inner(*format, "response_format.");
  const auto type = inner.word("type", {"text", "json_object", "json_schema"});
  if (!type) throw FieldError(inner.path("type"), inner.path("type") + " is missing: text, json_object or json_schema");
  if (*type == "text") return "";
  if (*type == "json_object" && inner.any("schema") == nullptr) return grammar_of_objects();
  const Json ordered = fields_in_order(body, request, {kField}).at(kField);
  if (*type == "json_object") return grammar_of_schema(ordered.at("schema"), inner.path("schema"));  // llama.cpp's form
  Fields schema(inner.required_object("json_schema"), inner.path("json_schema."));
  check_about_schema(schema);
  return grammar_of_schema(ordered.at("json_schema").at("schema"), schema.path("schema"));
}

}  // namespace winnow::server
