// SPDX-License-Identifier: Apache-2.0
// Any JSON as a schema: refused by a sentence, or a grammar that can be read.
#include <cstdlib>

#include "base/json.h"
#include "engine/grammar.h"
#include "engine/model_impl.h"
#include "fuzz/seed_model.h"
#include "server/openai/errors.h"
#include "server/schema/schema.h"

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  static const auto model = winnow::test::seed_model();
  std::string grammar;
  try {
    const auto schema = winnow::parse_json<winnow::server::Json>(std::string(data, size));
    grammar = winnow::server::grammar_of_schema(schema, "schema");
  } catch (const winnow::JsonError&) {
    return 0;
  } catch (const winnow::server::FieldError&) {
    return 0;
  }
  try {
    winnow::GenerateOptions options;
    options.grammar = grammar;
    const winnow::engine::Grammar taken(model->impl().vocab, options);
  } catch (const winnow::UsageError&) {
    std::abort();
  }
  return 0;
}
