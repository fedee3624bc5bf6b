// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>

namespace winnow::chat {

/// A grammar of the values of a JSON Schema.
struct SchemaGrammar {
  std::string grammar;             ///< GBNF with a rule `root`
  std::set<std::string> left_out;  ///< keywords that the grammar does not enforce
};

/// Converts any JSON Schema; what a grammar cannot enforce is allowed. Throws UsageError for a text that is not JSON,
/// or too long or deep.
SchemaGrammar grammar_of(const std::string& schema);

/// Rejects a schema that check_json() rejects, or that repeats a type: llama.cpp copies a schema for each of its types.
/// Throws TemplateError, which begins with `name`.
void check_schema(const std::string& name, const std::string& schema);

/// An equivalent schema that is an object with members, the only form that llama.cpp accepts for answers.
std::string object_schema(const std::string& schema);

}  // namespace winnow::chat
