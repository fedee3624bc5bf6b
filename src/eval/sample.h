// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "winnow/model.h"

namespace winnow::eval {

/// How an answer is scored against a reference; the best of all references counts.
enum class Metric : std::uint8_t {
  qa_f1,
  qa_f1_zh,
  rouge_l,
  rouge_l_zh,
  classification,
  retrieval,
  count,
  code_similarity,
  last_number,   ///< 1 if the answer's last number is the reference (LongEval)
  contains_all,  ///< the share of the references that the answer contains, ignoring case (RULER's string_match_all)
  longest_part,  ///< the longest part of a reference that the answer contains, ignoring case, as a share of it; the
                 ///< mean over the references
  contains_any,  ///< 1 if the answer contains one of them (RULER's string_match_part)
};

const char* name_of(Metric metric);
/// Throws UsageError, listing all, for an unknown name.
Metric parse_metric(const std::string& name);

/// The part of an answer that is scored.
enum class ScoredText : std::uint8_t {
  whole,
  first_line,  ///< for few-shot prompts, after which models add examples of their own
};

/// A continuation of a prompt whose likelihood is measured.
struct Choice {
  std::string name;
  std::string given;   ///< text read after the prompt
  std::string scored;  ///< text after `given`, whose likelihood is measured
};

/// One prompt of a task with its expected answer. With documents, the model reads the prompt's text (if any, a document
/// of its own), the documents in their order, and the question.
struct Sample {
  std::string task;
  std::string id;  ///< unique within the task
  PromptText prompt;
  std::string later;  ///< a question after a long answer to the prompt's; its answer is scored. Empty: there is none
  std::string begun;  ///< the beginning of the scored answer, read after its question and the template's end
  std::vector<std::string> documents;
  std::vector<std::string> references;
  std::vector<std::string> classes;  ///< of classification
  std::vector<Choice> choices;       ///< of multiple choice; the reference is the name of the right one
  Metric metric = Metric::qa_f1;
  std::vector<Metric> further;  ///< additional metrics, which become values of records
  ScoredText scored = ScoredText::whole;
  int max_tokens = 32;
  int requests = 1;                           ///< number of requests that arrive together, if the measure serves them
  std::uint32_t seed = 1;                     ///< for drawing tokens in place of an answer
  std::map<std::string, std::string> labels;  ///< by which reports group: "length", "depth"
};

/// 0 … 1.
double score(const Sample& sample, Metric metric, const std::string& answer);
/// The score by the sample's own metric.
inline double score(const Sample& sample, const std::string& answer) { return score(sample, sample.metric, answer); }

}  // namespace winnow::eval
