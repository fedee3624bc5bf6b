// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <exception>

#include "base/as_size.h"
#include "base/clock.h"
#include "eval/measures/measure.h"
#include "winnow/error.h"
#include "winnow/scheduler.h"

namespace winnow::eval {

namespace {

/// The prompt of request `i`. Each begins at another place of the text, so that none shares a prefix.
Prompt prompt_of(const TokenizedSample& sample, int i) {
  Prompt out = sample.prompt;
  const auto shift = out.text.size() * as_size(i) / as_size(sample.sample->requests);
  std::rotate(out.text.begin(), out.text.begin() + static_cast<std::ptrdiff_t>(shift), out.text.end());
  return out;
}

/// Results of all requests.
struct Served {
  double first_token_ms = 0;  ///< the sum
  std::exception_ptr error;
  CacheStats stats;  ///< of the last one to end
  std::size_t tokens = 0;

  void add(const RequestEnd& end) {
    if (end.error) error = end.error;
    first_token_ms += end.queue_ms + end.read_ms;
    for (const auto& answer : end.answers) tokens += answer.tokens.size();
    if (!end.caches.empty()) stats = end.caches.front().stats();
  }
};

Request request_for(const TokenizedSample& sample, int i, const CacheOptions& keep, Served& served) {
  Request request = request_of(prompt_of(sample, i), sample.protocol);
  request.keep = keep;
  request.generate.max_tokens = sample.sample->max_tokens;
  request.generate.end = EndOfSequence::ignored;
  request.events.on_end = [&served](const RequestEnd& end) { served.add(end); };
  return request;
}

int answering_now(const Scheduler& scheduler) {
  const auto states = scheduler.states();
  return static_cast<int>(std::count_if(states.begin(), states.end(), [](const RequestState& state) {
    return state.phase == RequestState::Phase::answering;
  }));
}

/// For the highest throughput: as many prompts as fit into memory are read before answers continue.
SchedulerOptions options_for(int requests, std::size_t memory) {
  SchedulerOptions out;
  out.parallel = requests;
  out.max_itl = std::chrono::hours(1);
  out.memory = memory;
  return out;
}

Record serve(Session& session, const TokenizedSample& sample, const CacheOptions& keep, std::size_t memory) {
  const int requests = sample.sample->requests;
  Served served;
  Scheduler scheduler(session, options_for(requests, memory));
  session.reset_peak();
  const auto begin = Clock::now();
  for (int i = 0; i < requests; ++i) scheduler.add(request_for(sample, i, keep, served));
  int together = 0;
  while (scheduler.advance()) together = std::max(together, answering_now(scheduler));
  const double ms = ms_since(begin);
  if (served.error) std::rethrow_exception(served.error);

  Record out;
  out.values["e2e_ms"] = ms;
  out.values["tps"] = 1000 * static_cast<double>(served.tokens) / ms;
  out.values["batch"] = together;
  out.values["ttft_ms"] = served.first_token_ms / requests;
  out.values["peak_bytes"] = static_cast<double>(session.memory().peak);
  out.score =
      std::max(0.0, 1 - static_cast<double>(served.stats.bytes_held) / static_cast<double>(served.stats.bytes_full));
  out.entries = served.stats.entries_per_head_mean;
  out.bytes_held = served.stats.bytes_held;
  out.timings.decode_ms = ms;
  return out;
}

}  // namespace

WholeMeasure serving(std::size_t memory) {
  return [memory](Session& session, const TokenizedSample& sample, const Method& method) {
    try {
      return serve(session, sample, method.cache(), memory);
    } catch (const MemoryError& error) {
      Record out;
      out.skipped = error.what();
      return out;
    }
  };
}

}  // namespace winnow::eval
