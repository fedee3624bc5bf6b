// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "engine/greedy_answer.h"
#include "winnow/scheduler.h"

namespace winnow::test {

/// A request for the `answer` likeliest tokens after a text that is stored.
inline Request stored_text_request(const CacheOptions& keep, std::vector<Token> text, std::string salt, int answer) {
  Request out;
  out.keep = keep;
  out.source = RequestText{.tokens = std::move(text), .cache_salt = std::move(salt)};
  out.generate.max_tokens = answer;
  out.generate.end = EndOfSequence::ignored;
  out.generate.logprobs = kLogprobs;
  return out;
}

/// Runs a request and everything else in a scheduler to its end.
inline RequestEnd end_of(Scheduler& scheduler, Request request) {
  RequestEnd out;
  request.events.on_end = [&](RequestEnd end) { out = std::move(end); };
  scheduler.add(std::move(request));
  while (scheduler.advance()) continue;
  return out;
}

}  // namespace winnow::test
