// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include <algorithm>

#include "eval/metrics/metric.h"
#include "eval/sample.h"
#include "winnow/error.h"

namespace winnow::eval {

namespace {

struct NamedMetric {
  Metric metric;
  const char* name;
};

constexpr NamedMetric kNames[] = {
    {Metric::qa_f1, "qa_f1"},
    {Metric::qa_f1_zh, "qa_f1_zh"},
    {Metric::rouge_l, "rouge_l"},
    {Metric::rouge_l_zh, "rouge_l_zh"},
    {Metric::classification, "class"},
    {Metric::retrieval, "retrieval"},
    {Metric::count, "count"},
    {Metric::code_similarity, "code_similarity"},
    {Metric::last_number, "last_number"},
    {Metric::contains_all, "contains"},
    {Metric::contains_any, "contains_any"},
    {Metric::longest_part, "longest_part"},
};

/// True if a score is the mean over the references, not the best of them.
bool is_mean(Metric metric) { return metric == Metric::contains_all || metric == Metric::longest_part; }

double score_one(const Sample& sample, Metric metric, std::string_view answer, std::string_view reference) {
  switch (metric) {
    case Metric::qa_f1:
      return qa_f1(answer, reference);
    case Metric::qa_f1_zh:
      return qa_f1_zh(answer, reference);
    case Metric::rouge_l:
      return rouge_l(answer, reference);
    case Metric::rouge_l_zh:
      return rouge_l_zh(answer, reference);
    case Metric::classification:
      return classification(answer, reference, sample.classes);
    case Metric::retrieval:
      return retrieval(answer, reference);
    case Metric::count:
      return count(answer, reference);
    case Metric::code_similarity:
      return code_similarity(answer, reference);
    case Metric::last_number:
      return last_number(answer, reference);
    case Metric::longest_part:
      return longest_part(answer, reference);
    case Metric::contains_all:
    case Metric::contains_any:
      break;
  }
  return string_match(answer, reference);
}

/// The first line: LongBench's cut of answers to few-shot prompts.
std::string first_line(const std::string& answer) {
  const auto begin = std::min(answer.find_first_not_of('\n'), answer.size());
  return answer.substr(begin, answer.find('\n', begin) - begin);
}

}  // namespace

const char* name_of(Metric metric) {
  return std::find_if(std::begin(kNames), std::end(kNames), [&](const NamedMetric& n) { return n.metric == metric; })
      ->name;
}

Metric parse_metric(const std::string& name) {
  std::vector<const char*> all;
  for (const auto& named : kNames) {
    if (name == named.name) return named.metric;
    all.push_back(named.name);
  }
  throw UsageError(fmt::format("there is no metric {} (there are {})", name, fmt::join(all, ", ")));
}

double score(const Sample& sample, Metric metric, const std::string& answer) {
  const std::string text = sample.scored == ScoredText::first_line ? first_line(answer) : answer;
  double best = 0;
  double sum = 0;
  for (const auto& reference : sample.references) {
    const double one = score_one(sample, metric, text, reference);
    best = std::max(best, one);
    sum += one;
  }
  return is_mean(metric) && !sample.references.empty() ? sum / static_cast<double>(sample.references.size()) : best;
}

}  // namespace winnow::eval
