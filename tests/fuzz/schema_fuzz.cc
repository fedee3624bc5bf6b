// SPDX-License-Identifier: Apache-2.0
// Any text as a schema: refused with a UsageError, or turned into a grammar that parses (unless it matches no text).
#include <cstdlib>
#include <string_view>

#include "chat/schema.h"
#include "engine/grammar.h"
#include "engine/model_impl.h"
#include "fuzz/seed_model.h"
#include "winnow/error.h"

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  static const auto model = winnow::test::seed_model();
  winnow::GenerateOptions options;
  try {
    options.grammar = winnow::chat::grammar_of(std::string(data, size)).grammar;
  } catch (const winnow::UsageError&) {
    return 0;
  }
  try {
    const winnow::engine::Grammar taken(model->impl().vocab, options);
  } catch (const winnow::UsageError& error) {
    if (!std::string_view(error.what()).starts_with("the grammar has no text")) std::abort();
  }
  return 0;
}
