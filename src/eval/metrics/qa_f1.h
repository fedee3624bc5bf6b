#pragma once

#include <span>
#include <string>
#include <string_view>

namespace winnow::eval {

/// F1 over the words that an answer and a reference have in common, each counted as often as it is there (SQuAD 1.1, as LongBench scores
/// English questions): lower case, without ASCII punctuation, without the words "a", "an" and "the". The best over `references`; 0 … 1, and
/// 0 where nothing is left of either.
double qa_f1(std::string_view answer, std::span<const std::string> references);

}  // namespace winnow::eval
