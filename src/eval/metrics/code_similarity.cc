// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <map>
#include <vector>

#include "eval/metrics/metric.h"
#include "eval/metrics/words.h"

namespace winnow::eval {

namespace {

using Characters = std::vector<UChar32>;

Characters characters_of(const icu::UnicodeString& text) {
  Characters out;
  for (int i = 0; i < text.length(); i = text.moveIndex32(i, 1)) out.push_back(text.char32At(i));
  return out;
}

/// Positions of each character in the line in which blocks are searched. In lines of at least 200 characters, leaves
/// out characters that make up more than 1 % of the line.
std::map<UChar32, std::vector<int>> places_of(const Characters& line) {
  std::map<UChar32, std::vector<int>> out;
  for (std::size_t i = 0; i < line.size(); ++i) out[line[i]].push_back(static_cast<int>(i));
  if (line.size() >= 200)
    std::erase_if(out, [&](const auto& entry) { return entry.second.size() > line.size() / 100 + 1; });
  return out;
}

struct Block {
  int a = 0;
  int b = 0;
  int length = 0;
};

class Matcher {
 public:
  Matcher(const Characters& a, const Characters& b) : a_(a), b_(b), places_(places_of(b)) {}

  /// Characters in the longest common block, plus, recursively, in those on each side of it.
  int matches() const { return matches(0, static_cast<int>(a_.size()), 0, static_cast<int>(b_.size())); }

 private:
  int matches(int a_begin, int a_end, int b_begin, int b_end) const {
    const Block block = longest(a_begin, a_end, b_begin, b_end);
    if (block.length == 0) return 0;
    return matches(a_begin, block.a, b_begin, block.b) + block.length +
           matches(block.a + block.length, a_end, block.b + block.length, b_end);
  }

  /// The longest common block, the first of equal ones, then extended by characters without positions.
  Block longest(int a_begin, int a_end, int b_begin, int b_end) const {
    Block best{a_begin, b_begin, 0};
    std::map<int, int>
        ending;  // for each position of b, the length of the common block that ends at it and at the character before
    for (int i = a_begin; i < a_end; ++i) {
      std::map<int, int> next;
      if (const auto found = places_.find(a_[i]); found != places_.end()) {
        for (const int j : found->second) {
          if (j < b_begin || j >= b_end) continue;
          const auto before = ending.find(j - 1);
          const int length = next[j] = before == ending.end() ? 1 : before->second + 1;
          if (length > best.length) best = {i - length + 1, j - length + 1, length};
        }
      }
      ending = std::move(next);
    }
    while (best.a > a_begin && best.b > b_begin && same(best.a - 1, best.b - 1))
      best = {best.a - 1, best.b - 1, best.length + 1};
    while (best.a + best.length < a_end && best.b + best.length < b_end &&
           same(best.a + best.length, best.b + best.length))
      ++best.length;
    return best;
  }

  bool same(int i, int j) const { return a_[i] == b_[j]; }

  const Characters& a_;
  const Characters& b_;
  std::map<UChar32, std::vector<int>> places_;
};

/// The first line that is neither a comment nor a fence.
std::string_view first_code(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of('\n'), text.size()));
  for (;;) {
    const auto line = text.substr(0, text.find('\n'));
    const bool comment =
        line.find_first_of("`#") != std::string_view::npos || line.find("//") != std::string_view::npos;
    if (!comment) return line;
    if (line.size() == text.size()) return "";
    text.remove_prefix(line.size() + 1);
  }
}

}  // namespace

double code_similarity(std::string_view answer, std::string_view reference) {
  const auto a = characters_of(unicode_of(first_code(answer)));
  const auto b = characters_of(unicode_of(reference));
  if (a == b) return 1;
  const double ratio = 2.0 * Matcher(a, b).matches() / static_cast<double>(a.size() + b.size());
  return std::nearbyint(100 * ratio) / 100;  // half to even, as in Python
}

}  // namespace winnow::eval
