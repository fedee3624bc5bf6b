// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

/// LongBench's metrics of one answer against one reference, 0 … 1 (arXiv 2308.14508; its scripts settle what the paper
/// leaves open).
namespace winnow::eval {

/// F1 over words in lower case, without ASCII punctuation and without "a", "an" and "the" (SQuAD 1.1).
double qa_f1(std::string_view answer, std::string_view reference);
/// F1 over segmented words without Chinese and ASCII punctuation.
double qa_f1_zh(std::string_view answer, std::string_view reference);

/// Summary-level ROUGE-L F1, as in the Python package `rouge`: sentences end at ".", and each word of the longest
/// common subsequences counts once. 0 if one side has no sentence.
double rouge_l(std::string_view answer, std::string_view reference);
/// The same over segmented words.
double rouge_l_zh(std::string_view answer, std::string_view reference);

/// 1 / (number of classes in the answer) if the right one is among them, else 0. Ignores classes whose name is a part
/// of the right one's.
double classification(std::string_view answer, std::string_view right, std::span<const std::string> classes);

/// Share of an answer's numbers that equal N of the reference, "Paragraph N" or "段落N".
double retrieval(std::string_view answer, std::string_view reference);
/// Share of an answer's numbers that equal the reference.
double count(std::string_view answer, std::string_view reference);

/// The paragraph numbers in an answer, in their order.
std::vector<double> paragraphs_of(std::string_view answer);

/// Shares of an answer's paragraphs before all right ones, and after them. Both are 0 if the answer names none.
struct Misplaced {
  double earlier = 0;
  double later = 0;
};
Misplaced misplaced(std::span<const double> named, std::span<const double> right);

/// 1 if the last number of an answer is the reference (LongEval).
double last_number(std::string_view answer, std::string_view reference);
/// 1 if an answer contains the reference, ignoring case (RULER).
double string_match(std::string_view answer, std::string_view reference);

/// Length of the longest part of the reference that the answer contains, ignoring case, as a share of the reference. 0
/// for an empty reference.
double longest_part(std::string_view answer, std::string_view reference);

/// Similarity of the reference to the answer's first line without "`", "#" and "//": Ratcliff and Obershelp's matching
/// blocks, rounded to a percent. Leaves out frequent characters of long lines, as Python's difflib does.
double code_similarity(std::string_view answer, std::string_view reference);

}  // namespace winnow::eval
