// SPDX-License-Identifier: Apache-2.0
#include "server/openai/response_format.h"

#include <spdlog/fmt/fmt.h>

#include <set>

#include "base/json.h"
#include "base/printable.h"
#include "chat/schema.h"
#include "server/openai/answer.h"
#include "server/openai/errors.h"

namespace winnow::server {

namespace {

constexpr const char* kObjects = R"({"type": "object"})";

void refuse_left_out(const std::string& schema, const std::string& path) {
  std::set<std::string> left_out;
  try {
    left_out = chat::grammar_of(schema).left_out;
  } catch (const UsageError& error) {
    throw FieldError(path, error.what());
  }
  if (left_out.empty()) return;
  throw FieldError(path, fmt::format("{} is strict, but winnow does not enforce {}: leave that out, or strict", path,
                                     brief(fmt::format("{}", fmt::join(left_out, ", ")))));
}

std::string checked_schema(const Json& schema, const std::string& path) {
  if (!schema.is_object() && !schema.is_boolean())
    throw FieldError(path, path + " is not a JSON Schema: give an object, true or false");
  std::string out = text_of(schema);
  try {
    chat::check_schema(path, out);
  } catch (const UsageError& error) {
    throw FieldError(path, error.what());
  }
  return out;
}

std::string read_schema(Fields& fields, const char* field) {
  const Json* const schema = fields.any(field);
  const std::string path = fields.path(field);
  if (schema == nullptr) throw FieldError(path, path + " is missing");
  auto out = checked_schema(*schema, path);
  if (fields.is_set("strict")) refuse_left_out(out, path);
  return out;
}

/// Reads a schema, or its text.
AskedFormat read_bare_schema(Fields& fields, const char* field) {
  const Json* const schema = fields.any(field);
  if (schema == nullptr) return {};
  const std::string path = fields.path(field);
  if (!schema->is_string()) return {checked_schema(*schema, path), path};
  try {
    return {checked_schema(parse_json<Json>(schema->get<std::string>()), path), path};
  } catch (const JsonError& error) {
    throw FieldError(path, fmt::format("{} cannot be read: {}", path, error.what()));
  }
}

/// Reads vLLM's object of formats.
AskedFormat read_structured_outputs(Fields& fields) {
  constexpr const char* kField = "structured_outputs";
  const Json* const forms = fields.object(kField);
  if (forms == nullptr) return {};
  Fields inner(*forms, "structured_outputs.");
  for (const char* const name : {"regex", "choice", "grammar", "structural_tag"}) {
    if (inner.any(name) != nullptr)
      throw NotImplemented(inner.path(name), inner.path(name) + " is not implemented: give json, a schema");
  }
  if (inner.is_set("json_object")) return {kObjects, inner.path("json_object")};
  return read_bare_schema(inner, "json");
}

std::string checked_type(Fields& format) {
  const auto type = format.word("type", {"text", "json_object", "json_schema"});
  if (type) return *type;
  throw FieldError(format.path("type"), format.path("type") + " is missing: give text, json_object or json_schema");
}

}  // namespace

AskedFormat read_format(Fields& fields, const char* field) {
  const Json* const format = fields.object(field);
  if (format == nullptr) return {};
  Fields inner(*format, fields.path(field) + ".");
  const std::string type = checked_type(inner);
  if (type == "text") return {};
  if (type == "json_object" && inner.any("schema") == nullptr) return {kObjects, fields.path(field)};
  return {read_schema(inner, "schema"), fields.path(field)};  // llama.cpp allows a schema with json_object, too
}

namespace {

AskedFormat read_openai_format(Fields& fields) {
  constexpr const char* kField = "response_format";
  const Json* const format = fields.object(kField);
  if (format == nullptr) return {};
  Fields inner(*format, "response_format.");
  if (checked_type(inner) != "json_schema") return read_format(fields, kField);
  Fields schema(inner.required_object("json_schema"), inner.path("json_schema."));
  schema.text("name");
  schema.text("description");
  return {read_schema(schema, "schema"), kField};
}

}  // namespace

AskedFormat read_response_format(Fields& fields) {
  AskedFormat out;
  for (auto& format : {read_openai_format(fields), read_structured_outputs(fields),
                       read_bare_schema(fields, "guided_json"), read_bare_schema(fields, "json_schema")}) {
    if (format.schema.empty()) continue;
    if (!out.schema.empty())
      throw FieldError(format.path,
                       fmt::format("{} and {} both set the answer's format: give one of them", out.path, format.path));
    out = format;
  }
  return out;
}

std::string read_object_schema(Fields& fields, const char* field) {
  const Json* const schema = fields.object(field);
  fields.boolean("strict");
  const bool has_none = schema == nullptr || schema->empty();
  return has_none ? R"({"type":"object","properties":{}})" : read_schema(fields, field);
}

}  // namespace winnow::server
