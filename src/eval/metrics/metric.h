// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

/// LongBench's metrics of one answer against one reference, 0 … 1 (arXiv 2308.14508, and its scripts where they say
/// more).
namespace winnow::eval {

/// F1 over words: lower case, without ASCII punctuation, without "a", "an" and "the" (SQuAD 1.1).
double qa_f1(std::string_view answer, std::string_view reference);
/// F1 over segmented words without Chinese and ASCII punctuation.
double qa_f1_zh(std::string_view answer, std::string_view reference);

/// ROUGE-L of summaries, F: sentences end at ".", and the words of each longest common subsequence of a sentence of
/// either side are counted once in all, as in the Python package `rouge`. 0 where one side has no sentence.
double rouge_l(std::string_view answer, std::string_view reference);
/// The same over segmented words.
double rouge_l_zh(std::string_view answer, std::string_view reference);

/// 1 / (number of classes that the answer names) when the right one is among them. A class whose name is a part of the
/// right one's does not count.
double classification(std::string_view answer, std::string_view right, std::span<const std::string> classes);

/// The share of an answer's numbers that are the right one: of "Paragraph N" or "段落N", …
double retrieval(std::string_view answer, std::string_view reference);
/// … or the reference itself.
double count(std::string_view answer, std::string_view reference);

/// The numbers of an answer that names paragraphs, in their order.
std::vector<double> paragraphs_of(std::string_view answer);

/// Shares of the paragraphs that an answer names: of those before all right ones, and of those after them. Both are 0
/// where it names none.
struct Misplaced {
  double earlier = 0;
  double later = 0;
};
Misplaced misplaced(std::span<const double> named, std::span<const double> right);

/// Whether the last number of an answer is the reference (LongEval).
double last_number(std::string_view answer, std::string_view reference);
/// Whether an answer contains the reference, in any case of letters (RULER).
double string_match(std::string_view answer, std::string_view reference);

/// The characters of the longest piece of the reference that the answer contains, in any case of letters, as a share of
/// the reference's. 0 for an empty reference.
double longest_part(std::string_view answer, std::string_view reference);

/// How alike the answer's first line without "`", "#" and "//" is to the reference, by the matching blocks of Ratcliff
/// and Obershelp (as Python's difflib finds them, popular characters of long lines left out), in whole percent.
double code_similarity(std::string_view answer, std::string_view reference);

}  // namespace winnow::eval
