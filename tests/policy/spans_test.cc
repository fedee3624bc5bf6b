// SPDX-License-Identifier: Apache-2.0
// Compares span(X) with a reference that finds words in the text itself, letter by letter.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <random>
#include <sstream>
#include <string>

#include "model/token_class.h"
#include "policy/fake_layer.h"
#include "winnow/error.h"

namespace winnow::test {
namespace {

using namespace reference;

/// The text of each token.
using Pieces = std::vector<std::string>;

Pieces random_text(int n, unsigned seed) {
  const std::array<std::string, 24> some = {"the", " cat", " un", "do",  "ing", " is", ".",  "\n",
                                            "4",   "7",    "-",   " a9", "f",   " x",  "_y", "!",
                                            "?\"", "3",    ". ",  ",",   ".\n", " -",  "",   "é"};
  std::mt19937 random(seed);
  Pieces out;
  for (int i = 0; i < n; ++i) out.push_back(some[random() % some.size()]);
  return out;
}

void set_text(FakeLayer& layer, const Pieces& text) {
  for (std::size_t j = 0; j < text.size(); ++j) layer.classes[j] = model::class_of(text[j]);
}

bool is_letter_of_word(char c) {
  const std::string all = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_-";
  return all.find(c) != std::string::npos;
}

/// True if a word continues from token j into the next token.
bool word_goes_on(const Pieces& text, int j) {
  const auto& a = text[z(j)];
  const auto& b = text[z(j + 1)];
  return !a.empty() && !b.empty() && is_letter_of_word(a.back()) && is_letter_of_word(b.front());
}

bool line_ends_with(const Pieces& text, int j) {
  return text[z(j)].empty() || text[z(j)].find('\n') != std::string::npos;
}

bool sentence_ends_with(const Pieces& text, int j) {
  std::string left = text[z(j)];
  while (!left.empty() && (left.back() == ' ' || left.back() == '"')) left.pop_back();
  if (left.empty() || (left.back() != '.' && left.back() != '!' && left.back() != '?')) return false;
  const auto& next = text[z(j + 1)];
  return next.empty() || !is_letter_of_word(next.front());
}

/// True if no score passes the border after token j.
bool ends(const Pieces& text, int j, const std::string& stop) {
  if (stop == "none") return false;
  return line_ends_with(text, j) || (stop == "sentence" && sentence_ends_with(text, j));
}

struct Shape {
  double before = 0.7;
  double after = 0.92;
  std::string stop = "sentence";
  double power = 1;
};

/// Share of entry `from`'s score that entry `to` gets; 0 if there is a border between them. `score`: relative to the
/// lowest one.
double handed_on(const Pieces& text, double score, int from, int to, const Shape& shape) {
  if (from != to && score < 1) score = std::pow(score, shape.power);
  for (int j = std::min(from, to); j < std::max(from, to); ++j) {
    if (ends(text, j, shape.stop)) return 0;
    score *= from < to ? shape.after : shape.before;
  }
  return score;
}

struct Kept {
  std::vector<std::int32_t> order;  ///< all entries, the kept ones first
  std::vector<double> worth;        ///< of each entry's word
};

/// Ranking of all entries of a text that has no window.
Kept spans(const Pieces& text, const std::vector<double>& score, const Shape& shape) {
  const int n = static_cast<int>(score.size());
  const double least = *std::min_element(score.begin(), score.end());
  Kept out{{}, std::vector<double>(z(n))};
  std::vector<int> word(z(n));  // first entry of each entry's word
  for (int j = 0; j < n; ++j) {
    word[z(j)] = j > 0 && word_goes_on(text, j - 1) ? word[z(j - 1)] : j;
    double& worth = out.worth[z(word[z(j)])];
    for (int i = 0; i < n; ++i) worth = std::max(worth, handed_on(text, score[z(i)] - least, i, j, shape));
  }
  for (int j = 0; j < n; ++j) {
    out.order.push_back(j);
    out.worth[z(j)] = out.worth[z(word[z(j)])] + (word[z(j)] == j ? least : 0);
  }
  std::sort(out.order.begin(), out.order.end(), [&](std::int32_t a, std::int32_t b) {
    if (word[z(a)] == word[z(b)]) return a < b;
    return out.worth[z(a)] != out.worth[z(b)] ? out.worth[z(a)] > out.worth[z(b)] : a > b;
  });
  return out;
}

std::vector<std::int32_t> with_window(const Kept& spans, int count, int n) {
  std::vector<std::int32_t> out(spans.order.begin(), spans.order.begin() + count);
  for (int j = static_cast<int>(spans.order.size()); j < n; ++j) out.push_back(j);
  return sorted(out);
}

/// Attention of the window to each entry, summed, for each head.
std::vector<std::vector<double>> window_sums(const FakeLayer& layer, int window) {
  std::vector<std::vector<double>> out;
  const int n = layer.tokens();
  for (int head = 0; head < layer.shape().kv_heads; ++head) {
    std::vector<std::vector<double>> sums;
    for (const auto& a : layer.group(head)) sums.push_back(column_sums(a, n - window, n, n - window));
    out.push_back(combined(sums, "sum"));
  }
  return out;
}

std::vector<double> summed(const std::vector<std::vector<double>>& heads) {
  auto out = heads.front();
  for (std::size_t h = 1; h < heads.size(); ++h) {
    for (std::size_t j = 0; j < out.size(); ++j) out[j] += heads[h][j];
  }
  return out;
}

const std::string kScores = "snapkv:window=8,kernel=1,gqa=sum";  // exact, so ties stay ties

std::string spec_of(const Shape& shape, const std::string& per) {
  std::ostringstream out;
  out << "span(" << kScores << "):before=" << shape.before << ",after=" << shape.after << ",stop=" << shape.stop
      << ",power=" << shape.power << ",per=" << per;
  return out.str();
}

const std::vector<Shape> kShapes = {{},
                                    {0.7, 0.92, "line"},
                                    {0.5, 0.875, "none"},
                                    {0, 0, "none"},
                                    {0, 1, "sentence"},
                                    {1, 0.25, "line"},
                                    {0.5, 0.75, "sentence", 2}};

TEST(Span, keeps_what_the_reference_keeps) {
  constexpr int kTokens = 150;
  for (const auto& [name, attention] : attentions()) {
    for (const auto& [kv_heads, group] : {std::pair{1, 1}, {3, 2}}) {
      FakeLayer layer(kv_heads, group, kTokens, attention);
      for (unsigned seed = 0; seed < 3; ++seed) {
        const auto text = random_text(kTokens, seed);
        set_text(layer, text);
        const auto scores = window_sums(layer, 8);
        for (const auto& shape : kShapes) {
          const auto shared = spans(text, summed(scores), shape);
          for (const int budget : {9, 10, 33, 60, 149}) {
            const auto together = layer.plan(spec_of(shape, "layer"), budget);
            const auto apart = layer.plan(spec_of(shape, "head"), budget);
            for (int head = 0; head < kv_heads; ++head) {
              SCOPED_TRACE(std::string(name) + " " + spec_of(shape, "") + " budget " + std::to_string(budget));
              EXPECT_EQ(kept(together, head, kTokens), with_window(shared, budget - 8, kTokens));
              EXPECT_EQ(kept(apart, head, kTokens),
                        with_window(spans(text, scores[z(head)], shape), budget - 8, kTokens));
            }
          }
        }
      }
    }
  }
}

TEST(Span, a_prompt_that_fits_stays_whole) {
  FakeLayer layer(2, 2, 60, random_attention(3));
  EXPECT_TRUE(layer.plan("span(" + kScores + ")", 60).keeps_all());
}

/// The best entry is the first digit of a number, which fixed chunks would cut.
TEST(Span, no_number_is_cut_by_hand) {
  Pieces text = {"one", " line", "\n", "The", " id", " is", " "};
  for (int i = 0; i < 12; ++i) text.emplace_back(i % 4 == 3 ? "-" : "7");
  for (const char* word : {".", " And", " on", " it", " goes", ".", "a", "b"}) text.emplace_back(word);
  const int n = static_cast<int>(text.size());  // 27; the last two are the window
  FakeLayer layer(1, 1, n, [](int, int, int j) { return j == 7 ? 0.5 : j == 20 ? 0.25 : 0.0; });
  set_text(layer, text);
  const auto of = [&](const std::string& options, int budget) {
    return layer.plan("span(snapkv:window=2,kernel=1):" + options, budget).heads[0];
  };
  const auto range = [](int first, int end) {
    std::vector<std::int32_t> out(z(end - first));
    std::iota(out.begin(), out.end(), first);
    out.insert(out.end(), {25, 26});
    return out;
  };
  EXPECT_EQ(of("before=0.9,after=0.1", 18), range(3, 19));   // from the line's beginning to the number's end
  EXPECT_EQ(of("before=0.1,after=0.96", 15), range(7, 20));  // to the sentence's end
  EXPECT_EQ(of("before=0.1,after=0.9", 5), range(7, 10));    // the word is cut: its first entries
  auto both = range(6, 19);                                  // 0.3 before the number, and 0.25 in another sentence
  both.insert(both.end() - 2, 20);
  EXPECT_EQ(of("before=0.6,after=0.1", 16), both);
  EXPECT_EQ(of("before=0.9,after=0.1,stop=none", 19), range(2, 19));  // across the line's beginning, which is worth 0.3
}

TEST(Span, a_mark_inside_of_a_number_ends_nothing) {
  const Pieces text = {"a", " 3", ".", "1", "4", ".", " B", " c", " d", "x", "y"};
  FakeLayer layer(1, 1, 11, [](int, int, int j) { return j == 1 ? 0.5 : 0.0; });
  set_text(layer, text);
  EXPECT_EQ(layer.plan("span(snapkv:window=2,kernel=1):before=0", 7).heads[0],
            (std::vector<std::int32_t>{1, 2, 3, 4, 5, 9, 10}));
}

/// Its neighbours' scores do not help it, either.
TEST(Span, a_score_that_is_no_number_is_the_worst) {
  FakeLayer layer(1, 1, 30, [](int, int, int j) { return j == 7 ? std::nan("") : j == 6 ? 0.5 : 0.0; });
  set_text(layer, Pieces(30, " word"));
  const auto kept_all_but_one = layer.plan("span(snapkv:window=2,kernel=1)", 29).heads[0];
  EXPECT_EQ(kept_all_but_one.size(), 29U);
  EXPECT_FALSE(std::binary_search(kept_all_but_one.begin(), kept_all_but_one.end(), 7));
}

/// Negative scores count relative to the lowest one: the entry with the longest key gives nothing to its neighbours.
TEST(Span, scores_may_be_negative) {
  constexpr int kTokens = 60;
  FakeLayer layer(1, 1, kTokens, random_attention(3));
  set_text(layer, random_text(kTokens, 5));
  std::vector<double> score;
  for (int j = 0; j < kTokens; ++j) {
    const auto row = layer.token(j);  // one head: its key, then its value
    const auto end = row.begin() + layer.shape().head_dim;
    score.push_back(-std::sqrt(std::inner_product(row.begin(), end, row.begin(), 0.0)));
  }
  for (const int budget : {10, 30}) {
    EXPECT_EQ(kept(layer.plan("span(knorm)", budget), 0, kTokens),
              with_window(spans(random_text(kTokens, 5), score, {}), budget, kTokens));
  }
}

/// With a power, weak entries give less to their neighbours: 0.25 becomes 0.0625, so a neighbour gets less than 0.125.
TEST(Span, a_power_of_weak_scores_is_handed_on_by_hand) {
  FakeLayer layer(1, 1, 30, [](int, int, int j) { return j == 5 ? 0.25 : j == 12 ? 0.125 : j == 20 ? 2.0 : 0.0; });
  set_text(layer, Pieces(30, " word"));
  const auto of = [&](const std::string& power, int budget) {
    auto out = layer.plan("span(snapkv:window=1,kernel=1):before=0,after=0.5,power=" + power, budget).heads[0];
    out.pop_back();  // the window
    return out;
  };
  EXPECT_EQ(of("1", 7), (std::vector<std::int32_t>{5, 20, 21, 22, 23, 24}));  // 2, 1, 0.5, 0.25, 0.25, 0.125
  EXPECT_EQ(of("1", 9), (std::vector<std::int32_t>{5, 6, 12, 20, 21, 22, 23, 24}));
  EXPECT_EQ(of("2", 9), (std::vector<std::int32_t>{5, 12, 20, 21, 22, 23, 24, 25}));  // 0.0625 before 6's 0.03125
}

/// Number of entries of each head among the best `total` of all heads; of equal ones the later, then the lower head's.
std::vector<int> counts_of_best(const std::vector<std::vector<float>>& worth, int total) {
  std::vector<std::pair<int, int>> order;
  for (int h = 0; h < static_cast<int>(worth.size()); ++h) {
    for (int j = 0; j < static_cast<int>(worth[z(h)].size()); ++j) order.emplace_back(h, j);
  }
  std::sort(order.begin(), order.end(), [&](const auto& a, const auto& b) {
    const float x = worth[z(a.first)][z(a.second)];
    const float y = worth[z(b.first)][z(b.second)];
    if (x != y) return x > y;
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  std::vector<int> out(worth.size());
  for (int i = 0; i < total; ++i) ++out[z(order[z(i)].first)];
  return out;
}

TEST(AdaSpan, heads_share_a_budget_by_what_their_spans_are_worth) {
  constexpr int kTokens = 120;
  for (const auto& [name, attention] : attentions()) {
    FakeLayer layer(3, 2, kTokens, attention);
    const auto text = random_text(kTokens, 7);
    set_text(layer, text);
    std::vector<Kept> reference;
    std::vector<std::vector<float>> worth;  // as scores are held
    for (const auto& score : window_sums(layer, 8)) {
      reference.push_back(spans(text, score, {}));
      const auto& exact = reference.back().worth;
      worth.push_back({exact.begin(), exact.end()});
    }
    for (const int budget : {10, 33, 90}) {
      const auto counts = counts_of_best(worth, 3 * (budget - 8));
      for (const char* spec : {"ada(span(*)):floor=0", "span(ada(*):floor=0)", "ada(span(*):per=head):floor=0"}) {
        std::string full = spec;
        full.replace(full.find('*'), 1, kScores);
        const auto plan = layer.plan(full, budget);
        for (int head = 0; head < 3; ++head) {
          EXPECT_EQ(kept(plan, head, kTokens), with_window(reference[z(head)], counts[z(head)], kTokens))
              << name << " " << full << " budget " << budget;
        }
      }
    }
  }
}

/// kvzip(span(X)): an entry is kept for its word's worth, or for the attention that it gets from the repetition.
TEST(KVzipSpan, words_and_what_is_repeated_compete) {
  constexpr int kTokens = 120;
  for (const auto& [name, attention] : attentions()) {
    FakeLayer layer(3, 2, kTokens, attention);
    const auto text = random_text(kTokens, 7);
    set_text(layer, text);
    std::vector<std::vector<double>> worth;
    std::vector<std::vector<double>> repeated(3, std::vector<double>(z(kTokens)));
    for (const auto& score : window_sums(layer, 8)) worth.push_back(spans(text, score, {}).worth);
    for (int head = 0; head < 3; ++head) {
      for (const auto& a : layer.group(head, kTokens)) {
        for (int j = 0; j < kTokens; ++j) {
          const double before = j > 0 ? a[z(kTokens + j - 1)][z(j)] : 0;
          repeated[z(head)][z(j)] = std::max({repeated[z(head)][z(j)], before, a[z(kTokens + j)][z(j)]});
        }
      }
    }
    for (const int budget : {40, 60, 90}) {
      const double weight = std::pow(budget / 120.0, 3);  // even=1
      const auto plan = layer.plan("kvzip(span(" + kScores + ")):even=1,demand=0,sharp=0", budget);
      for (int head = 0; head < 3; ++head) {
        std::vector<double> joint;  // as scores are held
        for (std::size_t j = 0; j < worth[z(head)].size(); ++j) {
          const auto more = static_cast<float>(weight * repeated[z(head)][j]);
          joint.push_back(std::max(static_cast<float>(worth[z(head)][j]), more));
        }
        auto want = ranking(joint);
        want.resize(z(budget - 8));
        for (int j = kTokens - 8; j < kTokens; ++j) want.push_back(j);
        EXPECT_EQ(kept(plan, head, kTokens), sorted(want)) << name << " budget " << budget;
      }
    }
  }
}

std::string refusal(const std::string& spec) {
  try {
    Spec::parse(spec);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(Span, refuses_with_the_reason_what_does_not_fit) {
  const auto says = [](const std::string& spec, const std::string& why) {
    EXPECT_NE(refusal(spec).find(why), std::string::npos) << spec << ": " << refusal(spec);
  };
  says("span(chunk(snapkv))", "it already keeps whole chunks of 20 positions");
  says("chunk(span(snapkv))", "it already keeps words, by scores of which each entry passes 0.7 on");
  says("span(streaming-llm)", "ranks nothing");
  says("span(ada(snapkv)):per=layer", "share the budget by need");
  says("span(snapkv):before=-1", "not possible: give 0 to 1");
  says("span(snapkv):stop=word", "not possible: give none|line|sentence");
  EXPECT_EQ(Spec::parse("span(snapkv:window=8):after=0.92,stop=sentence,per=auto").print(), "span(snapkv:window=8)");
}

}  // namespace
}  // namespace winnow::test
