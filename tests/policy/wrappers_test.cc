// SPDX-License-Identifier: Apache-2.0
// Tests of budgets over layers and heads, and of whole chunks, by presets and by wrappers.
#include <gtest/gtest.h>

#include <numeric>

#include "policy/fake_layer.h"
#include "winnow/error.h"

namespace winnow::test {
namespace {

using namespace reference;

/// Ranking of the scores of all heads: pairs (head, index), the best first; of equal ones the later index, then the
/// lower head.
std::vector<std::pair<int, int>> flattened(const std::vector<std::vector<double>>& scores) {
  std::vector<std::pair<int, int>> out;
  for (int h = 0; h < static_cast<int>(scores.size()); ++h) {
    for (int j = 0; j < static_cast<int>(scores[h].size()); ++j) out.emplace_back(h, j);
  }
  std::sort(out.begin(), out.end(), [&](const auto& a, const auto& b) {
    const double x = scores[a.first][a.second];
    const double y = scores[b.first][b.second];
    if (x != y) return x > y;
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  return out;
}

/// Rounds down, then adds the remaining units by the largest fraction. Shares are multiples of 1/2 here, so this is
/// exact.
std::vector<int> rounded(const std::vector<double>& shares, int total) {
  std::vector<int> out;
  std::vector<std::pair<double, int>> fraction;
  for (int i = 0; i < static_cast<int>(shares.size()); ++i) {
    out.push_back(static_cast<int>(std::floor(shares[i])));
    fraction.emplace_back(-(shares[i] - out.back()), i);
    total -= out.back();
  }
  std::sort(fraction.begin(), fraction.end());
  for (int i = 0; i < total; ++i) ++out[fraction[i].second];
  return out;
}

std::vector<std::vector<double>> window_scores(const FakeLayer& layer, int window, const char* gqa = "mean") {
  std::vector<std::vector<double>> out;
  const int n = layer.tokens();
  for (int head = 0; head < layer.shape().kv_heads; ++head) {
    std::vector<std::vector<double>> sums;
    for (const auto& a : layer.group(head)) sums.push_back(column_sums(a, n - window, n, n - window));
    out.push_back(pooled(combined(sums, gqa), 7, "max", "valid"));
  }
  return out;
}

std::vector<std::int32_t> best_and_window(const std::vector<double>& score, int count, int n) {
  const auto order = ranking(score);
  std::vector<std::int32_t> out(order.begin(), order.begin() + count);
  for (int j = static_cast<int>(score.size()); j < n; ++j) out.push_back(j);
  return sorted(out);
}

TEST(Ada, keeps_what_the_reference_keeps) {
  constexpr int kTokens = 90;
  for (const auto& [name, attention] : attentions()) {
    for (const auto& [kv_heads, group] : {std::pair{1, 1}, {3, 2}, {2, 7}}) {
      FakeLayer layer(kv_heads, group, kTokens, attention);
      const auto scores = window_scores(layer, 8);
      for (const int budget : {9, 10, 33, 60, 89}) {
        const int base = budget - 8;
        std::vector<int> counts(z(kv_heads));
        const auto order = flattened(scores);
        for (int i = 0; i < kv_heads * base; ++i) ++counts[order[i].first];
        std::vector<double> shares;
        for (const int c : counts) shares.push_back(0.5 * c + 0.5 * base);
        const auto caps = rounded(shares, kv_heads * base);
        const auto plan = layer.plan("ada-snapkv:window=8", budget);
        const auto wrapped = layer.plan("ada(snapkv:window=8)", budget);
        int sum = 0;
        for (int head = 0; head < kv_heads; ++head) {
          EXPECT_EQ(kept(plan, head, kTokens), best_and_window(scores[head], caps[head], kTokens))
              << name << " budget " << budget;
          EXPECT_EQ(kept(wrapped, head, kTokens), kept(plan, head, kTokens));
          sum += static_cast<int>(kept(plan, head, kTokens).size());
        }
        EXPECT_EQ(sum, kv_heads * budget);
      }
    }
  }
}

TEST(Ada, a_hard_floor_protects_each_heads_best) {
  // All of the best entries are in head 0. With floor=0.5, head 1 keeps half of its share.
  FakeLayer layer(2, 1, 60, [](int h, int, int j) { return h == 0 ? 0.01 + j * 0.001 : 0.001 * (j % 5); });
  const auto plan = layer.plan("ada-snapkv:window=4,kernel=1,floor-rule=hard,floor=0.5", 24);
  EXPECT_EQ(plan.heads[0].size(), 4 + 30U);
  EXPECT_EQ(plan.heads[1].size(), 4 + 10U);
  const auto all = layer.plan("ada-snapkv:window=4,kernel=1,floor=0", 24);
  EXPECT_EQ(all.heads[1].size(), 4U);
  const auto uniform = layer.plan("ada-snapkv:window=4,kernel=1,floor=1", 24);
  EXPECT_EQ(uniform.heads[1].size(), 24U);
}

/// The paper proves that the selection's total score is never smaller than with uniform shares.
TEST(Ada, never_selects_less_score_than_uniform) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    FakeLayer layer(4, 1, 70,
                    [random = random_attention(seed)](int h, int i, int j) { return random(h, i, j) * (h + 1) / 4; });
    for (const int budget : {10, 20, 41}) {
      const auto total = [&](const std::string& spec) {
        const auto plan = layer.plan(spec, budget);
        double sum = 0;
        for (int head = 0; head < 4; ++head) {
          const auto sums = column_sums(layer.group(head).front(), 62, 70, 62);
          for (const auto j : plan.heads[head]) sum += j < 62 ? sums[j] : 0;
        }
        return sum;
      };
      const double uniform = total("snapkv:window=8,kernel=1");
      EXPECT_GE(total("ada(snapkv:window=8,kernel=1)"), uniform - 1e-9);
      EXPECT_GE(total("ada(snapkv:window=8,kernel=1):floor=0"), total("ada(snapkv:window=8,kernel=1)") - 1e-9);
    }
  }
}

std::vector<int> layer_budgets(const std::string& spec, int budget, int layers, int tokens) {
  std::vector<int> out;
  const std::vector<policy::LayerPrompt> prompts(layers, {tokens, 1});
  for (const auto& one : policy::spread_over_layers(Spec::parse(spec).method(), budget, prompts))
    out.push_back(one.mean);
  return out;
}

TEST(Pyramid, follows_the_formula_and_adds_up) {
  // C = 100, min = 5, max = 195: 195, 147.5, 100, 52.5, 5, plus the window of 32. Of the two halves, the lower layer's
  // is rounded up.
  EXPECT_EQ(layer_budgets("pyramidkv", 132, 5, 1000), (std::vector<int>{227, 180, 132, 84, 37}));
  // No layer gets more entries than the prompt has: max = 150, min = 50.
  EXPECT_EQ(layer_budgets("pyramidkv", 132, 3, 182), (std::vector<int>{182, 132, 82}));
  EXPECT_EQ(layer_budgets("pyramid(snapkv):beta=2", 132, 3, 1000), (std::vector<int>{182, 132, 82}));
  EXPECT_EQ(layer_budgets("pyramidkv", 132, 1, 1000), (std::vector<int>{132}));
  // A window of 1: C = 2, max = 3.9, min = 0.1; 4.9, 3 and 1.1.
  EXPECT_EQ(layer_budgets("pyramidkv:window-share=2", 3, 3, 60), (std::vector<int>{5, 3, 1}));
  for (const int budget : {33, 40, 57, 132, 500, 999}) {
    for (const int layers : {1, 2, 7, 30}) {
      for (const char* spec : {"pyramidkv", "pyramid(h2o)", "pyramid(nacl)", "ada-pyramid", "pyramid(random):beta=1"}) {
        const auto out = layer_budgets(spec, budget, layers, 1000);
        EXPECT_EQ(std::accumulate(out.begin(), out.end(), 0), layers * budget) << spec;
        EXPECT_TRUE(std::is_sorted(out.rbegin(), out.rend())) << spec;
      }
    }
  }
}

TEST(Pyramid, preset_and_wrappers_agree) {
  FakeLayer layer(2, 2, 80, random_attention(2));
  for (int l = 0; l < 4; ++l) {
    for (const int budget : {34, 50, 79}) {
      const auto plan = [&](const char* spec) { return layer.plan(Spec::parse(spec), budget, l, 4).heads; };
      EXPECT_EQ(plan("pyramidkv"), plan("pyramid(snapkv)"));
      EXPECT_EQ(plan("ada-pyramid"), plan("ada(pyramid(snapkv))"));
      EXPECT_EQ(plan("ada-pyramid"), plan("pyramid(ada-snapkv)"));
      EXPECT_EQ(plan("ada(pyramidkv)"), plan("pyramid(ada(snapkv))"));
    }
  }
}

TEST(Chunk, keeps_whole_chunks_and_cuts_the_last_by_hand) {
  // Window 2, so 18 evictable positions in chunks 0-4, 5-9, 10-14 and 15-17 with means 0.5, 1.4, 0.2 and 1.0 (scaled).
  const std::vector<int> value = {1, 0, 0, 1, 0, 1, 4, 2, 0, 0, 0, 0, 1, 0, 0, 3, 0, 0};
  FakeLayer layer(1, 1, 20, [&](int, int, int j) { return j < 18 ? value[j] * 0.015625 : 0; });
  const auto of = [&](int budget) { return layer.plan("chunk(snapkv:window=2,kernel=1):length=5", budget).heads[0]; };
  EXPECT_EQ(of(7), (std::vector<std::int32_t>{5, 6, 7, 8, 9, 18, 19}));
  EXPECT_EQ(of(5), (std::vector<std::int32_t>{5, 6, 7, 18, 19}));  // the best is 6; its neighbours are equally near
  EXPECT_EQ(of(4), (std::vector<std::int32_t>{6, 7, 18, 19}));     // of two equally near, the later one
  EXPECT_EQ(of(11), (std::vector<std::int32_t>{3, 5, 6, 7, 8, 9, 15, 16, 17, 18,
                                               19}));  // of two equal ones in chunk 0, the later (3) is the best
}

TEST(Chunk, layers_share_chunks_and_heads_may_not) {
  FakeLayer layer(3, 2, 100, random_attention(4));
  const auto shared = layer.plan("chunk(snapkv:window=8)", 40).heads;
  EXPECT_EQ(shared[0], shared[1]);
  EXPECT_EQ(shared[0], shared[2]);
  EXPECT_EQ(shared[0].size(), 40U);
  const auto own = layer.plan("chunk(snapkv:window=8):per=head", 40).heads;
  EXPECT_NE(own[0], own[1]);
  const auto uneven = layer.plan("ada(chunk(snapkv:window=8):per=head)", 40).heads;
  EXPECT_EQ(uneven[0].size() + uneven[1].size() + uneven[2].size(), 120U);
}

/// A chunk of one head: consecutive entries.
struct Chunk {
  int first;
  int count;
  double mean;
};

std::vector<Chunk> chunks_of(const std::vector<double>& score, int length) {
  std::vector<Chunk> out;
  for (int first = 0; first < static_cast<int>(score.size()); first += length) {
    Chunk chunk{first, std::min(length, static_cast<int>(score.size()) - first), 0};
    for (int j = first; j < first + chunk.count; ++j) chunk.mean += score[j];
    chunk.mean /= chunk.count;
    out.push_back(chunk);
  }
  return out;
}

/// Best chunks of one head, and the window. The last chunk is cut to the entries nearest to its best one.
std::vector<std::int32_t> best_chunks_and_window(const std::vector<double>& score, int length, int count, int n) {
  auto chunks = chunks_of(score, length);
  std::sort(chunks.begin(), chunks.end(),
            [](const Chunk& a, const Chunk& b) { return a.mean != b.mean ? a.mean > b.mean : a.first > b.first; });
  std::vector<std::int32_t> out;
  for (const auto& chunk : chunks) {
    int best = chunk.first;
    for (int j = chunk.first; j < chunk.first + chunk.count; ++j) best = score[j] >= score[best] ? j : best;
    for (int distance = 0; distance < chunk.count; ++distance) {
      for (const int j : {best + distance, best - distance}) {
        if (j < chunk.first || j >= chunk.first + chunk.count) continue;
        if (static_cast<int>(out.size()) < count && std::find(out.begin(), out.end(), j) == out.end()) out.push_back(j);
      }
    }
  }
  for (int j = static_cast<int>(score.size()); j < n; ++j) out.push_back(j);
  return sorted(out);
}

/// Replaces each entry's score by its chunk's mean.
std::vector<std::vector<double>> by_chunk(const std::vector<std::vector<double>>& scores, int length) {
  auto out = scores;
  for (auto& score : out) {
    for (const auto& chunk : chunks_of(score, length)) {
      for (int j = chunk.first; j < chunk.first + chunk.count; ++j) score[j] = chunk.mean;
    }
  }
  return out;
}

/// Number of entries of each head among the best `total` of all heads.
std::vector<int> counts_of_best(const std::vector<std::vector<double>>& scores, int total) {
  std::vector<int> out(scores.size());
  const auto order = flattened(scores);
  for (int i = 0; i < total; ++i) ++out[order[i].first];
  return out;
}

/// Ada-KV's number of entries for each head: blended with the uniform share, or after each head's best `floor` of it.
std::vector<int> shared(std::vector<std::vector<double>> scores, int base, double floor, const std::string& rule) {
  const int total = base * static_cast<int>(scores.size());
  if (rule == "hard") {
    for (auto& score : scores) {
      const auto order = ranking(score);
      for (int i = 0; i < static_cast<int>(floor * base); ++i) score[order[i]] = 1e9;
    }
    return counts_of_best(scores, total);
  }
  std::vector<double> shares;
  for (const int count : counts_of_best(scores, total)) shares.push_back((1 - floor) * count + floor * base);
  return rounded(shares, total);
}

TEST(AdaChunk, heads_share_a_layers_budget_by_chunks_as_the_reference_does) {
  constexpr int kTokens = 150;
  constexpr int kWindow = 8;
  for (const auto& [name, attention] : attentions()) {
    for (const auto& [kv_heads, group] : {std::pair{1, 1}, {3, 2}, {2, 7}}) {
      FakeLayer layer(kv_heads, group, kTokens, attention);
      const auto scores = window_scores(layer, kWindow, "sum");  // exact, so ties stay ties
      for (const int length : {1, 7, 20}) {
        for (const int budget : {9, 10, 33, 60, 149}) {
          for (const std::string floor : {"floor=0.5", "floor=0", "floor=0.5,floor-rule=hard"}) {
            const int base = budget - kWindow;
            const auto counts = shared(by_chunk(scores, length), base, floor == "floor=0" ? 0 : 0.5,
                                       floor.find("hard") == std::string::npos ? "blend" : "hard");
            const auto chunk = ":length=" + std::to_string(length);
            const auto plan = layer.plan("ada(chunk(snapkv:window=8,gqa=sum)" + chunk + ",per=head):" + floor, budget);
            for (int head = 0; head < kv_heads; ++head) {
              EXPECT_EQ(kept(plan, head, kTokens), best_chunks_and_window(scores[head], length, counts[head], kTokens))
                  << name << " " << length << " " << floor << " budget " << budget << " head " << head;
            }
            const auto other =
                layer.plan("chunk(ada(snapkv:window=8,gqa=sum):" + floor + ")" + chunk + ",per=head", budget);
            EXPECT_EQ(other.heads, plan.heads) << "in the other order";
          }
        }
      }
    }
  }
}

TEST(AdaChunk, need_is_measured_on_chunks_by_hand) {
  // Window 2, 18 evictable positions, chunks of 6, 4 entries for each head. Head 0 has single high entries (3 in each
  // chunk, means 0.5), head 1 one chunk of ones. Ranked by entries, the three peaks are the best, and head 1 gets the
  // other 5. Ranked by chunks, head 1's chunk has twice the mean of any of head 0's.
  FakeLayer layer(2, 1, 20, [](int h, int, int j) {
    if (j >= 18) return 0.0;
    return 0.015625 * (h == 0 ? (j % 6 == 3 ? 3.0 : 0.0) : (j >= 6 && j < 12 ? 1.0 : 0.0));
  });
  const auto of = [&](const char* spec) { return layer.plan(spec, 6).heads; };
  const auto entries = of("ada(snapkv:window=2,kernel=1):floor=0");
  EXPECT_EQ(entries[0], (std::vector<std::int32_t>{3, 9, 15, 18, 19}));
  EXPECT_EQ(entries[1], (std::vector<std::int32_t>{7, 8, 9, 10, 11, 18, 19}));
  const auto chunks = of("ada(chunk(snapkv:window=2,kernel=1):length=6):floor=0");
  EXPECT_EQ(chunks[0], (std::vector<std::int32_t>{15, 16, 18, 19}));
  EXPECT_EQ(chunks[1], (std::vector<std::int32_t>{6, 7, 8, 9, 10, 11, 18, 19}));
}

/// All but one of a head's chunks are kept whole or not at all.
TEST(AdaChunk, every_head_cuts_at_most_one_chunk) {
  constexpr int kLength = 9;
  for (const auto& [name, attention] : attentions()) {
    FakeLayer layer(4, 2, 140, attention);
    for (const char* spec :
         {"ada(chunk(snapkv:window=8):length=9)", "chunk(ada(snapkv:window=8):floor=0.2):length=9",
          "pyramid(ada(chunk(snapkv:window=8):length=9):floor-rule=hard)", "chunk(ada-pyramid:window=8):length=9",
          "ada(chunk(knorm):length=9)", "ada(chunk(keydiff):length=9):floor=0"}) {
      const Spec parsed = Spec::parse(spec);
      const auto& method = parsed.method();
      for (const int budget : {20, 61, 90}) {
        for (int l = 0; l < 3; ++l) {
          const auto plan = layer.plan(Spec::parse(spec), budget, l, 3);
          const auto always_kept = method.selection.always_kept.call({140, 2}, budget);
          for (const auto& head : plan.heads) {
            int cut = 0;
            for (int first = always_kept.sinks; first < 140 - always_kept.recent; first += kLength) {
              const int end = std::min(first + kLength, 140 - always_kept.recent);
              const auto in = std::count_if(head.begin(), head.end(), [&](int j) { return j >= first && j < end; });
              cut += in > 0 && in < end - first ? 1 : 0;
            }
            EXPECT_LE(cut, 1) << name << " " << spec << " budget " << budget;
          }
        }
      }
    }
  }
}

/// As with single entries, the kept chunks are worth no less than those that uniform shares keep.
TEST(AdaChunk, never_selects_less_score_than_uniform) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    FakeLayer layer(4, 1, 70,
                    [random = random_attention(seed)](int h, int i, int j) { return random(h, i, j) * (h + 1) / 4; });
    std::vector<std::vector<double>> scores;
    for (int head = 0; head < 4; ++head) {
      auto sums = column_sums(layer.group(head).front(), 62, 70, 62);
      scores.push_back(sums);
    }
    const auto worth = by_chunk(scores, 5);
    for (const int budget : {10, 20, 41}) {
      const auto total = [&](const std::string& spec) {
        const auto plan = layer.plan(spec, budget);
        double sum = 0;
        for (int head = 0; head < 4; ++head) {
          for (const auto j : plan.heads[head]) sum += j < 62 ? worth[head][j] : 0;
        }
        return sum;
      };
      const std::string chunk = "chunk(snapkv:window=8,kernel=1):length=5";
      const double uniform = total(chunk + ",per=head");
      EXPECT_GE(total("ada(" + chunk + ")"), uniform - 1e-9);
      EXPECT_GE(total("ada(" + chunk + "):floor=0"), total("ada(" + chunk + ")") - 1e-9);
    }
  }
}

TEST(AdaChunk, the_order_of_wrappers_makes_no_difference) {
  FakeLayer layer(3, 2, 100, random_attention(12));
  for (int l = 0; l < 4; ++l) {
    for (const int budget : {34, 50, 99}) {
      const auto plan = [&](const char* spec) { return layer.plan(Spec::parse(spec), budget, l, 4).heads; };
      const auto first = plan("ada(pyramid(chunk(snapkv)))");
      for (const char* spec :
           {"pyramid(ada(chunk(snapkv)))", "ada(chunk(pyramid(snapkv)))", "chunk(ada(pyramidkv))",
            "pyramid(chunk(ada(snapkv)))", "chunk(pyramid(ada-snapkv)):per=head", "chunk(ada-pyramid)"})
        EXPECT_EQ(plan(spec), first) << spec;
    }
  }
}

/// Heads without a shared budget select the same chunks, unless per=head.
TEST(Chunk, who_chooses_by_default) {
  FakeLayer layer(3, 2, 100, random_attention(4));
  const auto of = [&](const char* spec) { return layer.plan(spec, 40).heads; };
  EXPECT_EQ(of("chunk(snapkv)"), of("chunk(snapkv):per=layer"));
  EXPECT_NE(of("chunk(snapkv)"), of("chunk(snapkv):per=head"));
  EXPECT_EQ(of("ada(chunk(snapkv))"), of("ada(chunk(snapkv):per=head)"));
  EXPECT_EQ(of("chunk(ada(snapkv))"), of("chunk(ada(snapkv)):per=head"));
  EXPECT_NE(of("ada(chunk(snapkv))"), of("chunk(snapkv):per=head"));
  EXPECT_EQ(Spec::parse("ada(chunk(snapkv:window=8):per=auto)").print(), "ada(chunk(snapkv:window=8))");
}

std::string refusal(const std::string& spec) {
  try {
    Spec::parse(spec);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(Wrappers, refuse_with_the_reason_what_does_not_fit) {
  for (const char* spec :
       {"ada(tova)", "ada(chunk(tova):per=head)", "chunk(ada(snapkv)):per=layer", "ada(chunk(snapkv):per=layer)"})
    EXPECT_NE(refusal(spec).find("one set"), std::string::npos) << spec;
  for (const char* spec : {"chunk(cam)", "ada(cam)", "pyramid(cam)"})
    EXPECT_NE(refusal(spec).find("own selection"), std::string::npos) << spec;
  for (const char* spec : {"ada(ada(snapkv))", "ada(ada-snapkv)", "pyramid(pyramidkv)", "pyramid(pyramid(h2o))",
                           "chunk(chunk(snapkv))", "ada(kvzip:rank=model)", "pyramid(kvzip:rank=model)",
                           "lookahead(lookahead(snapkv))", "lookahead(ada(lookahead(snapkv)))"}) {
    EXPECT_NE(refusal(spec).find("already"), std::string::npos) << spec;
  }
  for (const char* inner : {"full", "streaming-llm"}) {
    for (const char* wrapper : {"ada", "pyramid", "chunk"}) {
      const auto spec = std::string(wrapper) + "(" + inner + ")";
      EXPECT_NE(refusal(spec).find(std::string(inner) + " ranks nothing"), std::string::npos) << spec;
    }
  }
  EXPECT_EQ(refusal("chunk(tova)"), "");
  for (const char* inner : {"quest", "infllm", "sage-kv:refresh=8", "quest(snapkv)"}) {
    EXPECT_NE(refusal(std::string("quest(") + inner + ")").find("already chooses what each query reads"),
              std::string::npos)
        << inner;
  }
  EXPECT_NE(refusal("quest(full)").find("quest(full) is not possible: it evicts nothing"), std::string::npos);
  for (const char* inner : {"h2o", "sage-kv", "streaming-llm", "ada(ahakv)", "ems"}) {
    EXPECT_NE(refusal(std::string("quest(") + inner + ")").find("evicts at every decode step"), std::string::npos)
        << inner;
  }
  for (const char* inner : {"snapkv:positions=cache", "ems:when=prefill", "streaming-llm:when=prefill"}) {
    EXPECT_NE(refusal(std::string("quest(") + inner + ")").find("do not stay at their positions"), std::string::npos)
        << inner;
  }
  for (const char* inner : {"h2o", "ada(ahakv)", "kvzap:when=step", "decoding(snapkv)"}) {
    EXPECT_NE(refusal(std::string("decoding(") + inner + ")").find("already evicts at every decode step"),
              std::string::npos)
        << inner;
  }
  EXPECT_NE(refusal("decoding(tova:when=prefill)").find("one set"), std::string::npos);
  EXPECT_NE(refusal("decoding(ems:when=prefill)").find("others were merged into"), std::string::npos);
  EXPECT_NE(refusal("decoding(cam:when=prefill)").find("own selection"), std::string::npos);
  for (const char* inner : {"full", "streaming-llm:when=prefill"}) {
    EXPECT_NE(refusal(std::string("decoding(") + inner + ")").find("ranks nothing"), std::string::npos) << inner;
  }
  EXPECT_NE(refusal("decoding(quest(snapkv))").find("already chooses what each query reads"), std::string::npos);
  EXPECT_NE(refusal("quest(decoding(snapkv))").find("evicts at every decode step"), std::string::npos);
  for (const char* inner : {"kvzip", "dapq", "lookahead(snapkv)", "kvzip(snapkv)"}) {
    EXPECT_NE(refusal(std::string("kvzip(") + inner + ")").find("already reads tokens again after the prompt"),
              std::string::npos)
        << inner;
  }
  for (const char* inner : {"knorm", "keydiff", "compactor", "ada(triattention)"})
    EXPECT_NE(refusal(std::string("kvzip(") + inner + ")").find("may be negative"), std::string::npos) << inner;
  for (const char* inner : {"tova", "span(snapkv):per=layer"})
    EXPECT_NE(refusal(std::string("kvzip(") + inner + ")").find("one set"), std::string::npos) << inner;
  for (const char* inner : {"ada(span(snapkv))", "chunk(ada-snapkv)"})
    EXPECT_NE(refusal(std::string("kvzip(") + inner + ")").find("around kvzip"), std::string::npos) << inner;
  for (const char* inner : {"h2o", "ems", "ahakv"})
    EXPECT_NE(refusal(std::string("kvzip(") + inner + ")").find("while decoding"), std::string::npos) << inner;
  EXPECT_NE(refusal("kvzip(sage-kv:refresh=8)"), "");
  EXPECT_EQ(refusal("kvzip(decoding(snapkv))"), "");
  EXPECT_NE(refusal("kvzip(critical(snapkv))").find("two steps"), std::string::npos);
  EXPECT_NE(refusal("kvzip(streaming-llm)").find("ranks nothing"), std::string::npos);
  EXPECT_EQ(refusal("ada(chunk(snapkv)):over=model"), "");
  EXPECT_NE(refusal("ada(pyramidkv):over=model").find("already share the budget as a pyramid"), std::string::npos);
  EXPECT_NE(refusal("pyramid(ada(h2o):over=model)").find("all its layers"), std::string::npos);
  EXPECT_NE(refusal("ada(lookahead(snapkv)):over=model").find("each need a second pass"), std::string::npos);
  EXPECT_NE(refusal("lookahead(kvzip:rank=model)").find("a pass of its own"), std::string::npos);
  for (const char* spec : {"pyramid(tova)", "pyramid(chunk(tova))", "chunk(pyramid(tova))"})
    EXPECT_NE(refusal(spec).find("the same number of entries in every layer"), std::string::npos) << spec;
}

TEST(Wrappers, heads_share_by_need_inside_and_around_kvzip) {
  const FakeLayer layer(3, 2, 100, random_attention(9));
  const std::string inner = "snapkv:window=4,rows=max,kernel=1,gqa=max";
  for (const int budget : {40, 90}) {
    EXPECT_EQ(layer.plan("kvzip(ada(" + inner + ")):demand=0,sharp=0", budget).heads,
              layer.plan("ada(kvzip(" + inner + "):demand=0,sharp=0)", budget).heads);
    EXPECT_NE(layer.plan("kvzip(ada(" + inner + ")):demand=0,sharp=0", budget).heads,
              layer.plan("ada(" + inner + ")", budget).heads);
  }
}

/// Other wrappers work inside and outside of quest(X).
TEST(Wrappers, quest_changes_nothing_of_what_is_kept) {
  const FakeLayer layer(2, 2, 100, random_attention(9));
  for (const char* inner : {"snapkv", "nacl", "knorm", "kvzip", "dapq", "lookahead(h2o)", "critical(snapkv)",
                            "streaming-llm:when=prefill,positions=absolute", "cam:when=prefill,prompt=merge"}) {
    const auto plan = layer.plan(inner, 40);
    EXPECT_EQ(layer.plan(std::string("quest(") + inner + ")", 40).heads, plan.heads) << inner;
  }
  for (const auto& [one, other] :
       {std::pair("ada(quest(snapkv))", "quest(ada(snapkv))"), {"chunk(quest(snapkv))", "quest(chunk(snapkv))"}}) {
    EXPECT_EQ(layer.plan(one, 40).heads, layer.plan(other, 40).heads);
    EXPECT_EQ(Spec::parse(one).method().decoding.attend.text, Spec::parse(other).method().decoding.attend.text);
  }
}

TEST(Wrappers, go_around_every_method_that_ranks) {
  FakeLayer layer(2, 2, 100, random_attention(9));
  for (const char* inner : {"h2o", "snapkv", "pyramidkv", "nacl", "sage-kv", "random", "knorm", "keydiff", "kvzip",
                            "kvzip(span(snapkv))", "dapq", "lookahead(h2o)", "triattention", "r-kv"}) {
    for (const std::string spec : {"ada({})", "pyramid({})", "chunk({})", "ada(pyramid({}))", "pyramid(ada({}))",
                                   "pyramid(chunk({}))", "ada(chunk({}):per=head)", "chunk(ada({}))",
                                   "ada(chunk(pyramid({})))", "span({})", "pyramid(ada(span({})))"}) {
      if (inner == std::string("pyramidkv") && spec.find("pyramid") != std::string::npos) continue;
      auto text = spec;
      text.replace(text.find("{}"), 2, inner);
      ASSERT_EQ(refusal(text), "");
      for (const int budget : {40, 99}) {
        int sum = 0;
        for (int l = 0; l < 3; ++l) {
          const auto plan = layer.plan(Spec::parse(text), budget, l, 3);
          for (const auto& head : plan.heads) {
            sum += static_cast<int>(head.size());
            EXPECT_TRUE(std::adjacent_find(head.begin(), head.end(), std::greater_equal<>()) == head.end()) << text;
          }
        }
        EXPECT_EQ(sum, 3 * 2 * budget) << text;
      }
    }
  }
}

}  // namespace
}  // namespace winnow::test
