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

}  // namespace winnow::chat
