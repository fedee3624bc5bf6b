// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "documents/ask_method.h"
#include "engine/prompt_reading.h"

namespace winnow::documents::methods {

namespace {

/// Tokens of the joint sequence, with the BOS of every document or of the first one only.
std::vector<Token> joint_tokens(const AskContext& context) {
  auto all = context.joint.token_ids();
  if (context.options.text("bos") == "each") return all;
  const auto bos = context.session.model->vocab().beginning();
  std::vector<Token> out;
  for (int i = 0; i < context.joint.count(); ++i) {
    auto begin = all.begin() + context.joint.offset(i);
    const auto end = all.begin() + context.joint.offset(i + 1);
    if (i > 0 && !bos.empty() && begin != end && *begin == bos.front()) ++begin;
    out.insert(out.end(), begin, end);
  }
  return out;
}

Steps run_recompute(const AskContext& context) {
  const PhaseTimer timer(context.asked, "prefill");
  const auto text = joint_tokens(context);
  const std::vector<std::vector<Token>> questions = {{context.question.begin(), context.question.end()}};
  auto& session = context.session;
  const engine::ReadingSizes sizes{.text = static_cast<int>(text.size()),
                                   .questions = {static_cast<int>(context.question.size())}};
  engine::PromptReading reading(session, {session, sizes, std::span(&context.cache, 1)},
                                {.text = text, .questions = questions});
  while (reading.advance()) co_yield kPause;
  context.asked.cache = std::move(reading.take_caches(0).front());
  context.asked.logits = reading.logits(0);
  context.asked.recompute_ratio = 1;
  context.asked.recompute_ratio_of_kept = 1;
}

}  // namespace

/// One joint prefill: the reference for the other methods. Reads tokens, and no stored keys and values.
///   bos  once: at the very beginning; each: in each document, as in the other methods
AskMethod recompute() {
  return {.name = "recompute",
          .summary = "reads all documents and the question again, as one text",
          .paper = "the plain transformer",
          .options = {{"bos", policy::Option::Choice{"once", {"once", "each"}},
                       "whether the beginning-of-sequence token is at the very beginning or before each document"}},
          .cache_spec = "full",
          .takes_compressed = true,
          .run = run_recompute};
}

}  // namespace winnow::documents::methods
