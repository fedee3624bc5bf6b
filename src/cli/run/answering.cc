// SPDX-License-Identifier: Apache-2.0
#include "cli/run/answering.h"

#include <chrono>
#include <utility>

namespace winnow::cli {

void generate_answer(Session& session, Cache& cache, const std::vector<float>& logits, const GenerateOptions& options,
                     const OnAnswer& on_answer, Answer& answer) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  const auto ms = [begin] { return std::chrono::duration<double, std::milli>(Clock::now() - begin).count(); };
  double first_ms = 0;
  Cache* const one = &cache;
  const OnText stream = [&](int, std::string_view bytes) {
    if (first_ms == 0) first_ms = ms();
    if (on_answer) on_answer(bytes);
  };
  answer.generation = std::move(generate(session, std::span(&one, 1), std::span(&logits, 1), options, stream).front());
  answer.first_token_ms = answer.prefill_ms + first_ms;
  answer.decode_ms = ms() - first_ms;
  answer.at_end = cache.stats();
  answer.memory_at_end = session.memory();
}

}  // namespace winnow::cli
