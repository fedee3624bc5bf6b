// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"
#include "eval/measures/answers.h"
#include "eval/measures/measure.h"
#include "eval/metrics/metric.h"
#include "winnow/error.h"
#include "winnow/generate.h"

namespace winnow::eval {

namespace {

/// Adds the paragraphs that the answer names, and the right ones (AhaKV, figure 7).
void add_paragraphs(const Sample& sample, Record& to) {
  const auto named = paragraphs_of(to.answer);
  std::vector<double> right;
  for (const auto& reference : sample.references) {
    for (const double number : paragraphs_of(reference)) right.push_back(number);
  }
  const auto wrong = misplaced(named, right);
  to.values["earlier"] = wrong.earlier;
  to.values["later"] = wrong.later;
  to.series = {{"paragraphs", named}, {"right_paragraphs", right}};
}

}  // namespace

std::vector<Record> generated_answers(Session& session, const TokenizedSample& tokenized, std::vector<Cache>& caches,
                                      const std::vector<std::vector<float>>& logits) {
  GenerateOptions options;
  options.max_tokens = tokenized.sample->max_tokens;
  std::vector<Cache*> all;
  for (auto& cache : caches) all.push_back(&cache);
  const auto begin = Clock::now();
  const auto answers = generate(session, all, logits, options);
  const double decode_ms = ms_since(begin);
  std::vector<Record> out(answers.size());
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (answers[i].finish == FinishReason::interrupted) throw Interrupted("interrupted");
    out[i].answer = answers[i].text;
    const Sample& sample = *tokenized.sample;
    out[i].score = score(sample, answers[i].text);
    for (const Metric metric : sample.further) out[i].values[name_of(metric)] = score(sample, metric, answers[i].text);
    out[i].timings.decode_ms = decode_ms;
    if (sample.metric == Metric::retrieval) add_paragraphs(sample, out[i]);
  }
  return out;
}

Measure answering() { return generated_answers; }

}  // namespace winnow::eval
