// SPDX-License-Identifier: Apache-2.0
#include "cli/run/answering.h"

#include <chrono>
#include <utility>

#include "cli/shown_answer.h"
#include "cli/wording.h"

namespace winnow::cli {

void generate_answer(Session& session, Cache& cache, const std::vector<float>& logits, const GenerateOptions& options,
                     AnswerSplitter splitter, const OnAnswerPart& on_part, Answer& answer) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  const auto ms = [begin] { return std::chrono::duration<double, std::milli>(Clock::now() - begin).count(); };
  double first_ms = 0;
  Cache* const one = &cache;
  const OnText stream = [&](int, std::string_view bytes) {
    if (first_ms == 0) first_ms = ms();
    on_part(splitter.add(bytes));
  };
  answer.generation = std::move(
      generate(session, std::span(&one, 1), std::span(&logits, 1), splitter.with_format(options), stream).front());
  on_part(splitter.end());
  answer.message = splitter.message();
  answer.first_token_ms = answer.prefill_ms + first_ms;
  answer.decode_ms = ms() - first_ms;
  answer.at_end = cache.stats();
  answer.memory_at_end = session.memory();
}

void answer_and_show(Session& session, Cache& cache, const std::vector<float>& logits, const RunOptions& options,
                     AnswerSplitter splitter, Answer& answer) {
  if (options.json) {
    generate_answer(
        session, cache, logits, options.generate, std::move(splitter), [](const AnswerPart&) {}, answer);
    return;
  }
  ShownAnswer shown(options.quiet ? ShownThinking::hidden : ShownThinking::shown);
  generate_answer(
      session, cache, logits, options.generate, std::move(splitter), [&](const AnswerPart& part) { shown.add(part); },
      answer);
  shown.end();
  say_if_cut(answer.generation);
}

}  // namespace winnow::cli
