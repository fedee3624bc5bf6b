// SPDX-License-Identifier: Apache-2.0
#include "chat/schema.h"

#include <json-schema-to-grammar.h>

#include "chat/bounds.h"

namespace winnow::chat {

SchemaGrammar grammar_of(const std::string& schema) {
  SchemaGrammar out;
  check_json_nesting("the schema", schema);
  bounded("the schema", "be made a grammar", schema.size(), [&] {
    const common_chat_schema_lenient lenient(out.left_out);
    out.grammar = json_schema_to_grammar(common_json::parse(schema));
  });
  return out;
}

}  // namespace winnow::chat
