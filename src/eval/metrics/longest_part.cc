// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "eval/metrics/metric.h"
#include "eval/metrics/words.h"

namespace winnow::eval {

double longest_part(std::string_view answer, std::string_view reference) {
  const auto said = lower_case(unicode_of(answer));
  const auto expected = lower_case(unicode_of(reference));
  int longest = 0;
  std::vector<int> ending(static_cast<std::size_t>(expected.length()) + 1);  // lengths of common parts that end before
                                                                             // each expected character
  for (int i = 0; i < said.length(); ++i) {
    for (int j = expected.length(); j > 0; --j) {
      auto& here = ending[static_cast<std::size_t>(j)];
      here = said[i] == expected[j - 1] ? ending[static_cast<std::size_t>(j) - 1] + 1 : 0;
      longest = std::max(longest, here);
    }
  }
  return expected.isEmpty() ? 0 : static_cast<double>(longest) / expected.length();
}

}  // namespace winnow::eval
