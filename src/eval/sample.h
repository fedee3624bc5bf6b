// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "winnow/model.h"

namespace winnow::eval {

/// How an answer is scored against one reference; the best of all references counts.
enum class Metric : std::uint8_t {
  qa_f1,
  qa_f1_zh,
  rouge_l,
  rouge_l_zh,
  classification,
  retrieval,
  count,
  code_similarity,
  last_number,   ///< whether the answer's last number is the reference (LongEval)
  contains_all,  ///< the share of the references that the answer contains, in any case of letters (RULER's
                 ///< string_match_all)
  longest_part,  ///< the share of a reference's characters that the longest piece of it in the answer has, in any case
                 ///< of letters; the mean over the references
  contains_any,  ///< whether it contains one of them (RULER's string_match_part)
};

const char* name_of(Metric metric);
/// Throws UsageError that lists all.
Metric parse_metric(const std::string& name);

/// Which text of an answer is scored.
enum class ScoredText : std::uint8_t {
  whole,
  first_line,  ///< of few-shot prompts, after which the model adds examples of its own
};

/// A continuation of a prompt whose likelihood is measured.
struct Choice {
  std::string name;
  std::string given;   ///< read after the prompt, …
  std::string scored;  ///< … and the text after it, whose likelihood counts
};

/// One prompt of a task with its expected answer. With documents, what is read is the prompt's text (where there is
/// one, a document of its own), the documents in their order, and the question.
struct Sample {
  std::string task;
  std::string id;  ///< unique within the task
  PromptText prompt;
  std::string begun;  ///< what the answer begins with: read after the question, and after the template's end
  std::vector<std::string> documents;
  std::vector<std::string> references;
  std::vector<std::string> classes;  ///< of classification
  std::vector<Choice> choices;       ///< of multiple choice; the reference is the name of the right one
  Metric metric = Metric::qa_f1;
  std::vector<Metric> further;  ///< records have them by their names, among the values
  ScoredText scored = ScoredText::whole;
  int max_tokens = 32;
  int requests = 1;                           ///< that come at once, where a measure serves them
  std::uint32_t seed = 1;                     ///< of what is drawn in place of an answer
  std::map<std::string, std::string> labels;  ///< what reports group by: "length", "depth"
};

/// 0 … 1.
double score(const Sample& sample, Metric metric, const std::string& answer);
/// By the sample's own metric.
inline double score(const Sample& sample, const std::string& answer) { return score(sample, sample.metric, answer); }

}  // namespace winnow::eval
