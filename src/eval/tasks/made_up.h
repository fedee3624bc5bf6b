// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "eval/random.h"

/// What prompts that are made up hide.
namespace winnow::eval {

/// Seven digits, the first of them not 0.
std::string made_up_number(Random& random);
/// A random UUID (version 4).
std::string made_up_uuid(Random& random);
/// An adjective and a noun: "quiet-harbor".
std::string made_up_word(Random& random);
/// So many letters.
std::string made_up_letters(Random& random, int count, char first_letter);
/// Words, each once: single ones while there are enough (440), else an adjective and a noun each (48,039).
std::vector<std::string> made_up_words(Random& random, int count);

}  // namespace winnow::eval
