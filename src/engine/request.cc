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
  out.text = std::move(prompt.text);
  if (protocol == Protocol::aware || out.text.empty()) {
    if (!out.text.empty()) out.asked = prompt.question.size();
    out.text.insert(out.text.end(), prompt.question.begin(), prompt.question.end());
  } else {
    out.question = std::move(prompt.question);
  }
  return out;
}

namespace engine {

namespace {

void check_stages(const Request& request) {
  const auto& stages = request.stages;
  if (stages.empty()) return;
  const auto is_no_step = [](std::size_t a, std::size_t b) { return a >= b; };
  if (stages.front() == 0 || stages.back() != request.text.size() ||
      std::adjacent_find(stages.begin(), stages.end(), is_no_step) != stages.end())
    throw UsageError(
        fmt::format("the stages of a text of {} tokens end at ascending places, and at its end", request.text.size()));
  if (request.prompt_logprobs) throw UsageError("log probabilities are those of a text without stages");
}

}  // namespace

void check(const Request& request, const Session::Impl& session) {
  const auto vocabulary = session.hparams.n_vocab;
  check(request.generate, *session.model);
  if (request.prompt_logprobs.value_or(0) < 0)
    throw UsageError(fmt::format("cannot report {} alternatives for a token", *request.prompt_logprobs));
  if (request.prompt_logprobs && (request.cache || request.source))
    throw UsageError("log probabilities are those of a text that is read, not of a cache's");
  constexpr int kMostAnswers = 128;
  if (request.answers > kMostAnswers)
    throw UsageError(fmt::format("a request for {} answers: at most {}", request.answers, kMostAnswers));
  if (request.answers < 1) throw UsageError(fmt::format("a request for {} answers: at least 1", request.answers));
  if (!request.question.empty()) session.check(request.question);
  check_stages(request);
  const auto& stages = request.stages;
  const std::size_t last = request.text.size() - (stages.size() > 1 ? stages[stages.size() - 2] : 0);
  if (request.asked > last)
    throw UsageError(
        fmt::format("a question of {} tokens is no part of a text that ends with a stage of {}", request.asked, last));
  if (!request.cache && !request.source) {
    request.keep.check();
    return session.check(request.text);
  }
  if (!request.text.empty() || (request.cache && request.source))
    throw UsageError("a request goes on after a cache or after a text, not after both");
  if (!request.source && request.question.empty() && request.logits.size() != as_size(vocabulary))
    throw UsageError(fmt::format("a request that goes on after a cache has {} logits, not the {} of its last token",
                                 request.logits.size(), vocabulary));
}

}  // namespace engine
}  // namespace winnow
