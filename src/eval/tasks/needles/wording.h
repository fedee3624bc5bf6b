// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "eval/random.h"
#include "eval/tasks.h"

/// What the prompts of needles/… hide and ask for.
namespace winnow::eval::needles {

/// How many sentences are hidden, and how the question leads to its answers.
enum class Shape : std::uint8_t {
  one,      ///< a sentence with the answer
  alike,    ///< that, and three of the same wording with other keys and other answers
  hop,      ///< two that are alike, and for each of them a sentence that gives another name for its key; the question
            ///< has that name
  several,  ///< three that are alike, and all their answers are asked for
};

/// How an answer looks.
struct Kind {
  const char* name;
  int max_tokens;  ///< of an answer that is begun
};

/// The kind of a name. Throws UsageError that lists all.
const Kind& kind_of(const std::string& name);

struct Hidden {
  std::vector<std::string> sentences;  ///< the first one has the first answer
  std::string question;
  std::string begun;                 ///< the asked sentence up to its answer, with the question's key
  std::vector<std::string> answers;  ///< each stands once in the sentences
};

/// No word that carries meaning and no template is in both splits.
Hidden made_up(Shape shape, const Kind& kind, Split split, Random& random);

}  // namespace winnow::eval::needles
