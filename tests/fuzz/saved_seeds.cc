// SPDX-License-Identifier: Apache-2.0
// Caches of methods that keep everything, that evict once or at every step, and that have state, summaries or
// un-rotated keys.
#include <string>
#include <vector>

#include "fuzz/seed_model.h"
#include "fuzz/seeds.h"
#include "winnow/session.h"

void winnow::test::write_seeds(const std::filesystem::path& folder) {
  winnow::Session session(seed_model(), {1, winnow::Precision::automatic, 512});
  using winnow::Role;
  const winnow::Conversation conversation{
      "a text", {{Role::system, "be brief"}, {Role::user, "a question"}, {Role::assistant, "an answer"}}};
  std::vector<winnow::Token> tokens;
  for (winnow::Token token = 3; token < 80; ++token) tokens.push_back(token);
  for (const char* spec : {"full", "streaming-llm", "snapkv:window=4", "ada-snapkv:window=4", "h2o", "tova", "cam",
                           "quest", "infllm", "quest(snapkv:window=4)", "tova:positions=cache", "sage-kv",
                           "r-kv:buffer=8", "ems:window=8,tau=-1", "ems:window=8,tau=-1,positions=cache"}) {
    winnow::CacheOptions options;
    options.spec = winnow::Spec::parse(spec);
    if (std::string(spec) != "full") options.budget = winnow::Budget::parse("64");
    options.kv_type = winnow::KvType::parse("q8_0/q4_0");
    const auto prefilled = session.prefill(tokens, std::span(&options, 1));
    session.save(folder / spec, prefilled.caches.front(), prefilled.logits, {conversation, tokens});
  }
}
