// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "eval/metrics/metric.h"
#include "eval/metrics/words.h"

namespace winnow::eval {

namespace {

using Sentences = std::vector<Words>;

/// Texts between full stops. A sentence of white space alone is one empty word.
Sentences sentences_of(const icu::UnicodeString& text) {
  Sentences out;
  for (int begin = 0; begin <= text.length();) {
    const int stop = text.indexOf(u'.', begin);
    const int end = stop < 0 ? text.length() : stop;
    if (end > begin) {
      out.push_back(split(text.tempSubStringBetween(begin, end)));
      if (out.back().empty()) out.back().emplace_back();
    }
    begin = end + 1;
  }
  return out;
}

/// Adds the words of the longest common subsequence. If there are several, takes the one whose backtracking goes along
/// `b` first.
void add_common(const Words& a, const Words& b, std::set<icu::UnicodeString>& to) {
  const std::size_t width = b.size() + 1;
  std::vector<int> length((a.size() + 1) * width);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      length[i * width + j] = a[i - 1] == b[j - 1] ? length[(i - 1) * width + j - 1] + 1
                                                   : std::max(length[(i - 1) * width + j], length[i * width + j - 1]);
    }
  }
  for (std::size_t i = a.size(), j = b.size(); i > 0 && j > 0;) {
    if (a[i - 1] == b[j - 1]) {
      to.insert(a[i - 1]);
      --i, --j;
    } else if (length[(i - 1) * width + j] > length[i * width + j - 1]) {
      --i;
    } else {
      --j;
    }
  }
}

std::size_t count_different(const Sentences& sentences) {
  std::set<icu::UnicodeString> all;
  for (const auto& sentence : sentences) all.insert(sentence.begin(), sentence.end());
  return all.size();
}

double rouge_l_of(const Sentences& answer, const Sentences& reference) {
  if (answer.empty() || reference.empty()) return 0;
  std::set<icu::UnicodeString> common;
  for (const auto& expected : reference) {
    for (const auto& said : answer) add_common(expected, said, common);
  }
  const auto n = static_cast<double>(common.size());
  const double recall = n / static_cast<double>(count_different(reference));
  const double precision = n / static_cast<double>(count_different(answer));
  return 2 * (precision * recall) / (precision + recall + 1e-8);
}

icu::UnicodeString joined(const Words& words) {
  icu::UnicodeString out;
  for (const auto& word : words) out.append(word).append(u' ');
  return out.trim();
}

}  // namespace

double rouge_l(std::string_view answer, std::string_view reference) {
  return rouge_l_of(sentences_of(unicode_of(answer)), sentences_of(unicode_of(reference)));
}

double rouge_l_zh(std::string_view answer, std::string_view reference) {
  return rouge_l_of(sentences_of(joined(segment(unicode_of(answer)))),
                    sentences_of(joined(segment(unicode_of(reference)))));
}

}  // namespace winnow::eval
