// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "eval/random.h"
#include "eval/tasks.h"

/// Texts that the prompts of needles/… hide and ask for.
namespace winnow::eval::needles {

/// Number of hidden sentences, and how the question leads to its answers.
enum class Shape : std::uint8_t {
  one,      ///< one sentence with the answer
  alike,    ///< the same, and three of the same wording with other keys and answers
  hop,      ///< two that are alike, each with a sentence that gives its key another name; the question uses that name
  several,  ///< three that are alike; the question asks for all their answers
};

/// The form of an answer.
struct Kind {
  const char* name;
  int max_tokens;  ///< of an answer whose beginning is given
};

/// The kind with this name. Throws UsageError, listing all, for an unknown name.
const Kind& kind_of(const std::string& name);

struct Hidden {
  std::vector<std::string> sentences;  ///< the first one has the first answer
  std::string question;
  std::string begun;                 ///< the asked sentence up to its answer, with the question's key
  std::vector<std::string> answers;  ///< each occurs once in the sentences
};

/// Makes sentences and a question. The splits share no template and no content word.
Hidden made_up(Shape shape, const Kind& kind, Split split, Random& random);

}  // namespace winnow::eval::needles
