// SPDX-License-Identifier: Apache-2.0
#include "engine/request.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

#include "base/as_size.h"
#include "engine/answering.h"
#include "winnow/error.h"

namespace winnow {

Request request_of(Prompt prompt, Protocol protocol) {
  Request out;
  auto& text = out.text();
  text.tokens = std::move(prompt.text);
  if (protocol == Protocol::aware || text.tokens.empty()) {
    if (!text.tokens.empty()) text.asked = prompt.question.size();
    text.tokens.insert(text.tokens.end(), prompt.question.begin(), prompt.question.end());
  } else {
    out.question = std::move(prompt.question);
  }
  return out;
}

namespace engine {

namespace {

void check_stages(const RequestText& text) {
  const auto& stages = text.stages;
  if (stages.empty()) return;
  const auto is_no_step = [](std::size_t a, std::size_t b) { return a >= b; };
  if (stages.front() == 0 || stages.back() != text.tokens.size() ||
      std::adjacent_find(stages.begin(), stages.end(), is_no_step) != stages.end())
    throw UsageError(
        fmt::format("the stages of a text of {} tokens must end at ascending positions, the last at the text's end",
                    text.tokens.size()));
  if (text.prompt_logprobs) throw UsageError("log probabilities of a prompt need a text without stages");
}

void check(const RequestText& text, const Session::Impl& session) {
  if (text.prompt_logprobs.value_or(0) < 0)
    throw UsageError(
        fmt::format("cannot report {} alternatives for each token: give 0 or more", *text.prompt_logprobs));
  check_stages(text);
  const auto& stages = text.stages;
  const std::size_t last = text.tokens.size() - (stages.size() > 1 ? stages[stages.size() - 2] : 0);
  if (text.asked > last)
    throw UsageError(
        fmt::format("a question of {} tokens is longer than the text's last stage, which has {}", text.asked, last));
  session.check(text.tokens);
}

}  // namespace

void check(const Request& request, const Session::Impl& session) {
  check(request.generate, *session.model);
  constexpr int kMostAnswers = 128;
  if (request.answers > kMostAnswers)
    throw UsageError(fmt::format("a request cannot have {} answers: at most {}", request.answers, kMostAnswers));
  if (request.answers < 1)
    throw UsageError(fmt::format("a request cannot have {} answers: at least 1", request.answers));
  if (!request.question.empty()) session.check(request.question);
  if (const auto* const text = std::get_if<RequestText>(&request.source)) {
    request.keep.check();
    check(*text, session);
  }
  const auto* const past = std::get_if<RequestCache>(&request.source);
  const auto vocabulary = session.hparams.n_vocab;
  if (past != nullptr && request.question.empty() && past->logits.size() != as_size(vocabulary))
    throw UsageError(fmt::format("a request that continues a cache has {} logits, expected the {} of its last token",
                                 past->logits.size(), vocabulary));
}

}  // namespace engine
}  // namespace winnow
