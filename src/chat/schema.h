// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>

namespace winnow::chat {

/// A grammar of the values of a JSON Schema.
struct SchemaGrammar {
  std::string grammar;             ///< GBNF with a rule `root`
  std::set<std::string> left_out;  ///< keywords of the schema that the grammar does not enforce
};

/// Reads any JSON Schema: what a grammar cannot enforce, it allows. Throws UsageError for a text that is not JSON, or
/// that is too long or too deep.
SchemaGrammar grammar_of(const std::string& schema);

/// Refuses the text of a schema that check_json() refuses, and one that names a type twice: llama.cpp copies a schema
/// for each of its types. Throws TemplateError, which begins with `name`.
void check_schema(const std::string& name, const std::string& schema);

/// A schema of the same values that is an object with members: llama.cpp takes no other for the schema of an answer.
std::string object_schema(const std::string& schema);

}  // namespace winnow::chat
