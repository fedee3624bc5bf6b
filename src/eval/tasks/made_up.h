// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "eval/random.h"
#include "eval/tasks.h"

/// Keys, numbers and words that generated prompts hide, and tasks of such prompts.
namespace winnow::eval {

/// Seven digits, the first of them not 0.
std::string made_up_number(Random& random);
/// A random UUID (version 4).
std::string made_up_uuid(Random& random);
/// An adjective and a noun: "quiet-harbor".
std::string made_up_word(Random& random);
/// `count` letters.
std::string made_up_letters(Random& random, int count, char first_letter);
/// A noun or an adjective from the split's half of winnow's words.
std::string made_up_noun(Random& random, Split split);
std::string made_up_adjective(Random& random, Split split);
/// Different words: single ones while there are enough (440), else an adjective and a noun each (48,039).
std::vector<std::string> made_up_words(Random& random, int count);

/// Depths at which answers are hidden, in percent of the prompt: the user's, or 0, 25, 50, 75 and 100.
std::vector<int> depths_of(const TaskOptions& options);

/// `options.limit` samples for each seed, or `usual` without a limit. `one` makes the sample of a seed and a number.
/// Ids end with the seed unless it is 1.
std::vector<Sample> make_up(const TaskOptions& options, int usual,
                            const std::function<Sample(std::uint32_t seed, int number)>& one);

/// A task that the model answers, with samples of the user's lengths, or of `usual` by default.
Task task_by_length(const TaskOptions& options, const std::vector<int>& usual,
                    const std::function<std::vector<Sample>(int length)>& samples_of);

}  // namespace winnow::eval
