// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"
#include "eval/measures/measure.h"
#include "eval/metrics/metric.h"
#include "winnow/error.h"
#include "winnow/generate.h"

namespace winnow::eval {

namespace {

/// Which paragraphs the answer names, and which are right (AhaKV, figure 7).
std::map<std::string, std::vector<double>> paragraphs(const Sample& sample, const std::string& answer) {
  std::map<std::string, std::vector<double>> out = {{"paragraphs", paragraphs_of(answer)}};
  for (const auto& reference : sample.references) {
    for (const double number : paragraphs_of(reference)) out["right_paragraphs"].push_back(number);
  }
  return out;
}

}  // namespace

Measure answering() {
  return [](Session& session, const TokenizedSample& tokenized, std::vector<Cache>& caches,
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
      for (const Metric metric : sample.further)
        out[i].values[name_of(metric)] = score(sample, metric, answers[i].text);
      out[i].timings.decode_ms = decode_ms;
      if (tokenized.sample->metric == Metric::retrieval) out[i].series = paragraphs(*tokenized.sample, out[i].answer);
    }
    return out;
  };
}

}  // namespace winnow::eval
