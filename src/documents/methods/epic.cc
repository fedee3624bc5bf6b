// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "documents/ask_method.h"

namespace winnow::documents::methods {

namespace {

Steps run_epic(const AskContext& context) {
  const auto& joint = context.joint;
  const int initial = context.options.integer("initial");
  const int local = context.options.integer("local");
  std::vector<std::int32_t> positions;
  for (int i = 1; i < joint.count(); ++i) {
    const int tokens = joint.document(i).tokens();
    for (int token = 0; token < tokens; ++token) {
      if (token < initial || token >= tokens - local) positions.push_back(joint.offset(i) + token);
    }
  }
  return recompute_everywhere(context, std::move(positions));
}

}  // namespace

/// EPIC (Hu et al., 2024, "EPIC: Efficient Position-Independent Caching for Serving Large Language Models", AttnLink):
/// keeps all entries, and recomputes the first tokens of every document but the first one, which are attention sinks
/// only because their document began there.
///   initial, local  numbers of first and last tokens of a document that are recomputed; SamKV's paper has 64 and 128
AskMethod epic() {
  return {
      .name = "epic",
      .summary = "keeps every entry and recomputes the first tokens of every document but the first",
      .paper = "Hu et al. 2024, EPIC: Efficient Position-Independent Caching for Serving Large Language Models",
      .options = {{"initial", policy::Option::Integer{16, 0, 1 << 30},
                   "first tokens of a document that are recomputed"},
                  {"local", policy::Option::Integer{0, 0, 1 << 30}, "last tokens of a document that are recomputed"}},
      .run = run_epic};
}

}  // namespace winnow::documents::methods
