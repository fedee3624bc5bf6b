// SPDX-License-Identifier: Apache-2.0
#include "winnow/generate.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/as_size.h"
#include "engine/answering.h"
#include "winnow/error.h"
#include "winnow/scheduler.h"

namespace winnow {

namespace {

/// A request that continues a cache and gives it back in the end.
Request request_of(Cache& cache, const std::vector<float>& logits, const GenerateOptions& options, int index,
                   const OnText& on_text, Generation& answer, std::exception_ptr& error) {
  Request out;
  Cache* const place = &cache;
  out.source = RequestCache{std::move(cache), logits};
  out.generate = options;
  out.generate.sampling.seed += static_cast<std::uint32_t>(index);
  const auto sent = std::make_shared<std::size_t>(0);
  out.events.on_token = [=](int, const GeneratedToken&, std::string_view bytes) {
    *sent += bytes.size();
    if (on_text && !bytes.empty()) on_text(index, bytes);
  };
  out.events.on_end = [=, &answer, &error](RequestEnd end) {
    *place = std::move(end.caches.front());
    answer = std::move(end.answers.front());
    try {
      if (end.error) std::rethrow_exception(end.error);
      if (on_text && answer.text.size() > *sent) on_text(index, std::string_view(answer.text).substr(*sent));
    } catch (...) {
      if (!error) error = std::current_exception();
    }
  };
  return out;
}

}  // namespace

void SamplingOptions::check() const {
  const auto require = [](bool holds, const char* name, double value, const char* range) {
    if (!holds) throw UsageError(fmt::format("{} is {}: it must be {}", name, value, range));
  };
  require(temperature >= 0 && std::isfinite(temperature), "the temperature", temperature, "0 (greedy) or more");
  require(top_k >= 0, "top-k", top_k, "0 (off) or more");
  require(top_p >= 0 && top_p <= 1, "top-p", top_p, "from 0 to 1");
  require(min_p >= 0 && min_p <= 1, "min-p", min_p, "from 0 to 1");
  require(repeat_penalty > 0 && std::isfinite(repeat_penalty), "the repeat penalty", repeat_penalty,
          "above 0 (1 is off)");
  require(std::isfinite(presence_penalty), "the presence penalty", presence_penalty, "a number (0 is off)");
  require(std::isfinite(frequency_penalty), "the frequency penalty", frequency_penalty, "a number (0 is off)");
}

void GenerateOptions::check() const {
  sampling.check();
  if (max_tokens < 0)
    throw UsageError(fmt::format("an answer cannot have at most {} tokens: give 0 or more", max_tokens));
  if (min_tokens < 0 || min_tokens > max_tokens)
    throw UsageError(fmt::format("an answer cannot have at least {} tokens: give 0 to {}, the most that it may have",
                                 min_tokens, max_tokens));
  if (logprobs < 0)
    throw UsageError(fmt::format("cannot report {} alternatives for each token: give 0 or more", logprobs));
}

std::vector<Generation> generate(Session& session, std::span<Cache* const> caches,
                                 std::span<const std::vector<float>> logits, const GenerateOptions& options,
                                 const OnText& on_text) {
  const int vocabulary = session.model().info().n_vocab;
  engine::check(options, session.model());
  if (logits.size() != caches.size())
    throw UsageError(
        fmt::format("{} caches have logits for {}: give logits for each cache", caches.size(), logits.size()));
  for (const auto& one : logits) {  // checked before any cache is moved
    if (one.size() != as_size(vocabulary))
      throw UsageError(fmt::format("a cache has {} logits, expected one for each of the vocabulary's {} tokens",
                                   one.size(), vocabulary));
  }
  std::vector<Generation> answers(caches.size());
  std::exception_ptr error;
  Scheduler scheduler(session, {.parallel = std::max(1, static_cast<int>(caches.size()))});
  std::vector<Scheduler::Id> ids;
  for (std::size_t i = 0; i < caches.size(); ++i) {
    ids.push_back(
        scheduler.add(request_of(*caches[i], logits[i], options, static_cast<int>(i), on_text, answers[i], error)));
  }
  try {
    while (scheduler.advance() && !error) continue;
    for (const auto id : ids) scheduler.cancel(id);  // after an error, gives all caches back
    scheduler.advance();
  } catch (const Interrupted&) {  // the answers are marked as interrupted
  }
  if (error) std::rethrow_exception(error);
  return answers;
}

}  // namespace winnow
