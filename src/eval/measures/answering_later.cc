// SPDX-License-Identifier: Apache-2.0
#include "eval/measures/answers.h"
#include "eval/measures/drawing.h"
#include "eval/measures/measure.h"
#include "eval/measures/steps.h"

namespace winnow::eval {

namespace {

/// Draws an answer by the first cache, which all caches read. Returns its text.
std::string read_answer(Session& session, const Sample& sample, int length, std::vector<Cache>& caches,
                        std::vector<Logits>& logits) {
  const auto ends = ends_of(session.model());
  Random random(sample.seed, sample.prompt.text, 0);
  std::string out;
  for (int i = 0; i < length; ++i) {
    const Token token = drawn(logits.front(), ends, random);
    out += session.model().vocab().text(token);
    step(session, caches, token, logits);
  }
  return out;
}

/// Tokens from the end of the first answer to the beginning of the second one, which is begun. Empty if the template
/// renders the first one in another way than it was read.
std::vector<Token> later_turn(const Model& model, const Sample& sample, const std::string& answer) {
  if (sample.prompt.format == PromptFormat::raw) return model.vocab().tokenize(sample.later);
  auto conversation = before_question(sample.prompt).with_question(sample.prompt.question);
  conversation.messages.push_back({Role::assistant, answer});
  auto [out, past] = model.turn(conversation, sample.later);
  if (past == Past::rewritten) return {};
  const auto begun = model.vocab().tokenize(sample.begun);
  out.insert(out.end(), begun.begin(), begun.end());
  return out;
}

}  // namespace

Measure answering_later(int between) {
  return [between](Session& session, const TokenizedSample& tokenized, std::vector<Cache>& caches,
                   std::vector<Logits> logits) {
    const auto& sample = *tokenized.sample;
    const auto turn = later_turn(session.model(), sample, read_answer(session, sample, between, caches, logits));
    if (turn.empty()) {
      Record skipped;
      skipped.skipped = "the chat template renders the first answer in another way than it was read";
      return std::vector<Record>(caches.size(), skipped);
    }
    for (std::size_t i = 0; i < caches.size(); ++i) logits[i] = session.extend(caches[i], turn);
    return generated_answers(session, tokenized, caches, logits);
  };
}

}  // namespace winnow::eval
