// SPDX-License-Identifier: Apache-2.0
#include "cli/kept/passages.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <numeric>

#include "base/as_size.h"
#include "base/counted.h"

namespace winnow::cli {

namespace {

/// Tokens of a passage: about one line.
constexpr int kTokens = 16;

/// Prefix sums of the number of heads that keep each token of the text: element i is the sum over the tokens before i.
std::vector<std::int64_t> sums_of_heads(const Kept& kept, const TextTokens& text) {
  std::vector<std::int64_t> sums(text.token_texts.size() + 1);
  for (const auto layer : kept.chosen()) {
    for (const auto& head : kept.layers[layer]) {
      for (const auto position : head) {
        if (position < text.first) continue;
        const auto index = as_size(position - text.first);
        if (index < text.token_texts.size()) ++sums[index + 1];
      }
    }
  }
  std::partial_sum(sums.begin(), sums.end(), sums.begin());
  return sums;
}

/// The text as one line: white space becomes one space, control characters are removed.
std::string one_line(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool space = c == ' ' || c == '\n' || c == '\t' || c == '\r';
    if (space && !out.empty() && out.back() != ' ') out += ' ';
    if (!space && byte >= 0x20 && byte != 0x7f) out += c;
  }
  return out;
}

}  // namespace

std::vector<KeptPassage> best_passages(const Kept& kept, const TextTokens& text, int most) {
  const int count = static_cast<int>(text.token_texts.size());
  const int length = std::min(kTokens, count);
  if (length == 0) return {};
  const auto sums = sums_of_heads(kept, text);
  const auto heads_keep = [&](int first) { return sums[first + length] - sums[first]; };
  std::vector<int> order(as_size(count - length) + 1);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return heads_keep(a) > heads_keep(b); });
  const double all = static_cast<double>(kept.chosen().size()) * kept.heads() * length;
  std::vector<KeptPassage> out;
  for (const int first : order) {
    if (static_cast<int>(out.size()) == most) break;
    const auto over = [&](const KeptPassage& p) { return std::abs(p.first - text.first - first) < length; };
    if (std::any_of(out.begin(), out.end(), over)) continue;
    KeptPassage passage{text.first + first, length, static_cast<double>(heads_keep(first)) / all, {}};
    for (int i = first; i < first + length; ++i) passage.words += text.token_texts[i];
    out.push_back(std::move(passage));
  }
  return out;
}

std::string list(const std::vector<KeptPassage>& passages) {
  std::string out = fmt::format("\npassages of {} that most heads keep (share of their entries, position, words):\n",
                                counted(passages.empty() ? kTokens : passages.front().tokens, "token"));
  for (const auto& p : passages) out += fmt::format("{:5.1f} % {:>7}  {}\n", 100 * p.share, p.first, one_line(p.words));
  return out;
}

}  // namespace winnow::cli
