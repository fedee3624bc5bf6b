// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "eval/random.h"
#include "eval/tasks.h"

/// RULER's prompts (arXiv 2404.06654; its repository settles what the paper leaves open).
namespace winnow::eval::ruler {

/// One prompt.
struct Made {
  std::string text;
  std::string question;  ///< the line that asks
  std::string begun;     ///< the answer's beginning
  std::vector<std::string> answers;
};

/// Makes a prompt with this number of units of haystack: sentences, words or documents.
using Maker = std::function<Made(int units, Random random, int number)>;

/// One of the 13 types of tasks.
struct Type {
  const char* name;
  int max_tokens = 128;
  int least = 1;           ///< units
  const char* needs = "";  ///< path in the data folder
  Metric metric = Metric::contains_all;
  std::function<Maker(const TaskOptions& options, int length)> maker;
};

void add_needles(std::vector<Type>& to);  ///< niah_*
void add_chains(std::vector<Type>& to);   ///< vt
void add_words(std::vector<Type>& to);    ///< cwe, fwe
void add_qa(std::vector<Type>& to);       ///< qa_1, qa_2

/// The line that most haystacks repeat.
inline constexpr const char* kNoise =
    "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again.";

/// Joins texts with a separator.
std::string join(const std::vector<std::string>& parts, const std::string& between);

}  // namespace winnow::eval::ruler
