// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <cmath>
#include <numbers>
#include <set>

#include "base/as_size.h"
#include "eval/tasks/made_up.h"
#include "eval/tasks/ruler/prompts.h"

namespace winnow::eval::ruler {

namespace {

constexpr int kCommon = 10;

/// How often words occur in a list, and the number of different words in the example.
struct Frequencies {
  int common;
  int others;
  int example_common;
  int example_others;
  int example_words;
};

/// Frequencies for a length; below 4,096 tokens, those of the authors.
Frequencies frequencies(int length) {
  return length < 4096 ? Frequencies{6, 1, 3, 1, 20} : Frequencies{30, 3, 10, 3, 40};
}

struct List {
  std::string numbered;  ///< "1. word 2. word …"
  std::vector<std::string> common;
};

std::string numbered(const std::vector<std::string>& words) {
  std::string out;
  for (std::size_t i = 0; i < words.size(); ++i) out += fmt::format("{}{}. {}", i > 0 ? " " : "", i + 1, words[i]);
  return out;
}

List list_of(Random& random, int words, int common_times, int other_times) {
  const auto different = made_up_words(random, words);
  List out;
  out.common.assign(different.begin(), different.begin() + kCommon);
  std::vector<std::string> all;
  for (std::size_t i = 0; i < different.size(); ++i)
    all.insert(all.end(), as_size(i < kCommon ? common_times : other_times), different[i]);
  random.shuffle(all);
  out.numbered = numbered(all);
  return out;
}

constexpr const char* kListed =
    "Below is a numbered list of words. In these words, some appear more often than others. Memorize the ones that "
    "appear most often.\n";
constexpr const char* kMostCommon = "\nQuestion: What are the 10 most common words in the above list?";
constexpr const char* kMostCommonAre = " Answer: The top 10 words that appear most often in the list are:";

Made common_words(const Frequencies& f, int units, Random& random) {
  const List example = list_of(random, f.example_words, f.example_common, f.example_others);
  const List list = list_of(random, units, f.common, f.others);
  const std::string shown =
      kListed + example.numbered + kMostCommon + kMostCommonAre + " " + numbered(example.common) + "\n";
  return {shown + kListed + list.numbered, kMostCommon, kMostCommonAre, list.common};
}

/// Words of six letters.
std::vector<std::string> coded_words(Random& random, int count) {
  std::set<std::string> known;
  std::vector<std::string> out;
  while (static_cast<int>(out.size()) < count) {
    if (auto word = made_up_letters(random, 6, 'a'); known.insert(word).second) out.push_back(word);
  }
  return out;
}

/// A prompt whose k-th most frequent word has a share of k^-2 / zeta(2). The first one is dots; the next three are
/// asked for.
Made frequent_words(int vocabulary, int units, Random& random) {
  constexpr double kZeta = std::numbers::pi * std::numbers::pi / 6;
  auto words = coded_words(random, vocabulary);
  words.front() = "...";
  std::vector<std::string> all;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const double share = 1 / (static_cast<double>((i + 1) * (i + 1)) * kZeta);
    all.insert(all.end(), static_cast<std::size_t>(units * share), words[i]);
  }
  random.shuffle(all);
  return {
      "Read the following coded text and track the frequency of each coded word. Find the three most frequently "
      "appeared coded words. " +
          join(all, " "),
      "\nQuestion: Do not provide any explanation. Please ignore the dots '....'. What are the three most frequently "
      "appeared words in "
      "the above coded text?",
      " Answer: According to the coded text above, the three most frequently appeared words are:",
      {words.begin() + 1, words.begin() + 4}};
}

}  // namespace

void add_words(std::vector<Type>& to) {
  to.push_back({"cwe", 120, kCommon + 1, "", Metric::contains_all, [](const TaskOptions&, int length) -> Maker {
                  return [f = frequencies(length)](int units, Random random, int) {
                    return common_words(f, units, random);
                  };
                }});
  constexpr int kLeast = 100;  // makes the fourth word rarer than the third
  to.push_back({"fwe", 50, kLeast, "", Metric::contains_all, [](const TaskOptions&, int length) -> Maker {
                  const int vocabulary = std::max(5, (length - 50) / 50);
                  return
                      [vocabulary](int units, Random random, int) { return frequent_words(vocabulary, units, random); };
                }});
}

}  // namespace winnow::eval::ruler
