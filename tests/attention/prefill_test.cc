// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/cpu.h"
#include "fixture.h"

namespace winnow::attention {
namespace {

constexpr ElementType kScratchTypes[] = {ElementType::f16, ElementType::bf16, ElementType::f32};
constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Reference results of tokens [first, n) and all heads, to compare with `out` [n - first][H_q][d].
class Expected {
 public:
  Expected(const Prompt& prompt, int first) : prompt_(prompt), first_(first) {
    for (int t = first; t < prompt.n; ++t) {
      for (int h = 0; h < prompt.shape.query_heads; ++h) results_.push_back(prompt.expected(t, h));
    }
  }

  void check(std::span<const float> out) const {
    const std::size_t d = z(prompt_.shape.head_dim);
    for (std::size_t i = 0; i < results_.size(); ++i) {
      const int token = first_ + static_cast<int>(i) / prompt_.shape.query_heads;
      const int head = static_cast<int>(i) % prompt_.shape.query_heads;
      expect_close(out.subspan(i * d, d), results_[i].out, results_[i].out_error,
                   "token " + std::to_string(token) + ", head " + std::to_string(head));
      if (testing::Test::HasFatalFailure()) return;
    }
  }

 private:
  const Prompt& prompt_;
  int first_;
  std::vector<reference::Result> results_;
};

struct Case {
  int d;
  int group;
  int n;
  ElementType type;
  friend void PrintTo(const Case& c, std::ostream* os) {
    *os << "d " << c.d << ", G " << c.group << ", n " << c.n << ", " << name_of(c.type);
  }
};

/// Every dimension with every group size and length; the types rotate through these cases, so that each meets each
/// other.
std::vector<Case> cases() {
  std::vector<Case> out;
  for (const int d : {64, 80, 96, 128, 256, 512}) {
    for (const int group : {1, 3, 7, 8}) {
      for (const int n : {1, 63, 64, 65, 4097}) out.push_back({d, group, n, kScratchTypes[out.size() % 3]});
    }
  }
  return out;
}

class PrefillShapes : public testing::TestWithParam<Case> {};

TEST_P(PrefillShapes, agrees_with_double_precision) {
  const Case& c = GetParam();
  Prompt prompt(shape_of(c.n < 1000 ? 2 : 1, c.group, c.d), c.n, c.type);
  const int first = std::max(0, c.n - (c.n < 1000 ? c.n : 3));  // only the last tokens of a long prompt
  for (const ComputeType compute_type : all_products()) {
    SCOPED_TRACE(name_of(compute_type));
    prompt.compute_type = compute_type;
    const Expected expected(prompt, first);
    on_every_target([&] { expected.check(prompt.prefill(first, c.n, 1)); });
  }
}

// If inputs are not rounded, only the probabilities are, and the bound is narrow even in long prompts.
TEST_P(PrefillShapes, rounds_nothing_but_probabilities_when_factors_are_bf16) {
  if (!supports(ComputeType::bf16)) GTEST_SKIP() << "this machine has no kernel for bf16";
  const Case& c = GetParam();
  Prompt prompt(shape_of(c.n < 1000 ? 2 : 1, c.group, c.d), c.n, ElementType::bf16);
  prompt.compute_type = ComputeType::bf16;
  prompt.round_factors();
  const int first = std::max(0, c.n - (c.n < 1000 ? c.n : 3));
  const Expected expected(prompt, first);
  on_every_target([&] { expected.check(prompt.prefill(first, 512, 2)); });
}

INSTANTIATE_TEST_SUITE_P(all, PrefillShapes, testing::ValuesIn(cases()));

TEST(Prefill, any_chunk_size_agrees_with_double_precision) {
  for (const ElementType type : kScratchTypes) {
    Prompt prompt(shape_of(2, 3, 64), 530, type);
    for (const ComputeType compute_type : all_products()) {
      SCOPED_TRACE(name_of(compute_type));
      prompt.compute_type = compute_type;
      const Expected all(prompt, 0);
      on_every_target([&] {
        for (const int chunk : {1, 7, 512, prompt.n}) {
          SCOPED_TRACE("chunks of " + std::to_string(chunk));
          all.check(prompt.prefill(0, chunk, 1));
        }
      });
    }
    if (testing::Test::HasFailure()) return;
  }
}

/// Depending on the token, each window covers none, some or all of the tokens before.
TEST(Prefill, after_other_tokens_agrees_with_double_precision) {
  for (const int window : {0, 5, 100, 300}) {
    for (const std::vector<int>& kept : {std::vector{200, 200}, {1, 130}, {64, 0}}) {
      if (window > 0 && kept[0] != kept[1]) continue;  // with a window, all heads keep the same tokens
      SCOPED_TRACE(testing::Message() << "a window of " << window << ", " << kept[0] << " and " << kept[1] << " kept");
      Prompt prompt(shape_of(2, 3, 64), 350, ElementType::f16);
      prompt.shape.window = window;
      const auto sinks = set_caps({0, 3}, prompt.shape);
      on_every_kernel([&](ComputeType compute_type) {
        prompt.compute_type = compute_type;
        Later later(prompt, 200, kept);
        for (const int chunk : {1, 40, 512}) {
          const auto out = later.prefill(chunk, 2);
          for (int token = later.first; token < prompt.n; ++token) {
            for (int head = 0; head < prompt.shape.query_heads; ++head) {
              const auto want = later.expected(token, head);
              const auto at = (z(token - later.first) * z(prompt.shape.query_heads) + z(head)) * 64;
              expect_close(std::span(out).subspan(at, 64), want.out, want.out_error,
                           "token " + std::to_string(token) + ", head " + std::to_string(head));
              if (testing::Test::HasFatalFailure()) return;
            }
          }
        }
      });
      if (testing::Test::HasFailure()) return;
    }
  }
}

TEST(Prefill, threads_do_not_change_a_bit) {
  Prompt prompt(shape_of(3, 3, 80), 700, ElementType::f16);
  on_every_kernel([&](ComputeType compute_type) {
    prompt.compute_type = compute_type;
    const auto one = prompt.prefill(0, 256, 1);
    for (const int threads : {2, 3}) EXPECT_EQ(prompt.prefill(0, 256, threads), one);
  });
}

TEST(Prefill, rows_beyond_the_chunk_are_not_seen) {
  Prompt prompt(shape_of(1, 3, 64), 130, ElementType::f32);
  Prompt poisoned(prompt.shape, 130, ElementType::f32);
  const std::size_t row = z(prompt.shape.query_heads * prompt.shape.head_dim);
  // Tokens after the chunk must have a weight of exactly 0, not merely a small one.
  const std::vector<float> poison(z(prompt.shape.head_dim), 1e30F);
  for (int i = 70; i < 130; ++i) poisoned.scratch.store(i, poison.data(), poison.data());
  on_every_kernel([&](ComputeType compute_type) {
    std::vector<float> out[2];
    for (int i : {0, 1}) {
      Prompt& p = i == 0 ? prompt : poisoned;
      out[i].resize(30 * row);
      cpu::Prefill attention(p.account, 1, compute_type);
      attention.begin({p.shape, p.q.data(), out[i].data(), 40, 30}, p.scratch);
      attention.run({});
    }
    EXPECT_EQ(out[0], out[1]);
  });
}

TEST(Prefill, one_overwhelming_logit_takes_its_value) {
  // q = 1e15 e_0 and k_j = 1e15 c_j e_0: logits differ by at least 1e28, so all weight is on the largest visible c. The
  // 200 values of c are distinct in bf16, and the values are small whole numbers, exact in bf16.
  Prompt prompt(shape_of(1, 1, 64), 200, ElementType::f32);
  std::vector<float> keys(z(prompt.n) * 64, 0.0F);
  auto values = noise(keys.size(), 5);
  for (float& x : values) x = std::round(10 * x);
  std::mt19937 random(6);
  std::vector<int> rank(z(prompt.n));
  for (int i = 0; i < prompt.n; ++i) rank[i] = i;
  std::shuffle(rank.begin(), rank.end(), random);
  for (int i = 0; i < prompt.n; ++i) keys[z(i) * 64] = 1e15F * static_cast<float>(rank[i] - 100);
  std::fill(prompt.q.begin(), prompt.q.end(), 0.0F);
  for (int i = 0; i < prompt.n; ++i) prompt.q[z(i) * 64] = 1e15F;
  prompt.fill(keys, values);
  on_every_kernel([&](ComputeType compute_type) {
    prompt.compute_type = compute_type;
    const auto out = prompt.prefill(0, 64, 1);
    int best = 0;
    for (int i = 0; i < prompt.n; ++i) {
      if (rank[i] > rank[best]) best = i;
      for (std::size_t x = 0; x < 64; ++x) ASSERT_EQ(out[z(i) * 64 + x], values[z(best) * 64 + x]) << "token " << i;
    }
  });
}

TEST(Prefill, keys_with_a_logit_of_minus_infinity_have_no_weight) {
  Prompt prompt(shape_of(1, 3, 64), 150, ElementType::f32);
  for (std::size_t i = 0; i < prompt.q.size(); i += 64) prompt.q[i] = 1.0F;
  auto keys = noise(z(prompt.n) * 64, 7);
  const auto values = noise(keys.size(), 8);
  // Hides the first 70 keys (more than a tile) and every third one after them.
  for (int i = 0; i < prompt.n; ++i) {
    if (i < 70 || i % 3 == 0) keys[z(i) * 64] = -kInfinity;
  }
  prompt.fill(keys, values);
  on_every_kernel([&](ComputeType compute_type) {
    prompt.compute_type = compute_type;
    ColumnStatistics sums({{QueryRowSet::Kind::all, 0, {}}, Reduction::sum}, 3, prompt.n);
    ColumnStatistics* const observers[] = {&sums};
    const auto out = prompt.prefill(0, 64, 1, observers);
    for (std::size_t i = 0; i < z(70) * 3 * 64; ++i) ASSERT_EQ(out[i], 0.0F) << "a query that sees nothing";
    for (int t = 70; t < prompt.n; ++t) {
      std::vector<float> k;
      std::vector<float> v;
      for (int j = 70; j <= t; ++j) {
        if (j % 3 == 0) continue;
        k.insert(k.end(), keys.begin() + j * 64, keys.begin() + (j + 1) * 64);
        v.insert(v.end(), values.begin() + j * 64, values.begin() + (j + 1) * 64);
      }
      const auto want = reference::attend(prompt.query(t, 0), k, v, logits_of(prompt.shape, 0), prompt.rounding());
      expect_close(std::span(out).subspan(z(t) * 3 * 64, 64), want.out, want.out_error, "token " + std::to_string(t));
    }
    for (int j = 0; j < prompt.n; ++j) {
      if (j >= 70 && j % 3 != 0) continue;
      ASSERT_EQ(sums.head(0)[j], 0.0F) << "key " << j;
    }
  });
}

/// Queries that see some leading rows and possibly their own, with results in double precision.
struct Seen {
  std::vector<std::int32_t> leading;
  std::vector<std::int32_t> own;
  std::vector<std::int32_t> from = {};

  Seen(int rows, int queries, unsigned seed) {
    std::mt19937 random(seed);
    for (int i = 0; i < queries; ++i) leading.push_back(static_cast<int>(random() % static_cast<unsigned>(rows - 1)));
    std::sort(leading.begin(), leading.end());
    leading.front() = 0;
    for (const int n : leading)
      own.push_back(random() % 2 == 0 ? -1 : n + static_cast<int>(random() % static_cast<unsigned>(rows - n)));
  }

  /// Hides some of the first rows, sometimes all leading ones.
  void hide_first(unsigned seed) {
    std::mt19937 random(seed);
    for (const int n : leading) {
      const int first = static_cast<int>(random() % static_cast<unsigned>(n + 1));
      from.push_back(from.empty() ? 0 : std::max(from.back(), random() % 8 == 0 ? n : first / 4));
    }
  }

  reference::Result expected(const Prompt& prompt, int query, int head) const {
    const int kv = head / prompt.shape.group();
    const int first = from.empty() ? 0 : from[query];
    auto keys = decoded(prompt.scratch.keys(kv), first, leading[query]);
    auto values = decoded(prompt.scratch.values(kv), first, leading[query]);
    if (const int row = own[query]; row >= 0) {
      for (const auto& [rows, into] :
           {std::pair(prompt.scratch.keys(kv), &keys), std::pair(prompt.scratch.values(kv), &values)}) {
        const auto more = decoded(rows, row, row + 1);
        into->insert(into->end(), more.begin(), more.end());
      }
    }
    return reference::attend(prompt.query(query, head), keys, values, logits_of(prompt.shape, head), prompt.rounding());
  }

  /// Expected values of every query and head.
  std::vector<reference::Result> expected(const Prompt& prompt) const {
    std::vector<reference::Result> out;
    for (int query = 0; query < static_cast<int>(leading.size()); ++query) {
      for (int head = 0; head < prompt.shape.query_heads; ++head) out.push_back(expected(prompt, query, head));
    }
    return out;
  }

  void check(Prompt& prompt, const std::vector<reference::Result>& want, int threads) const {
    const int heads = prompt.shape.query_heads;
    const std::size_t d = z(prompt.shape.head_dim);
    std::vector<float> out(leading.size() * z(heads) * d, std::nanf(""));
    std::vector<float> sums(leading.size() * z(heads), std::nanf(""));
    cpu::Prefill attention(prompt.account, threads, prompt.compute_type);
    attention.record_logsums(sums.data());
    attention.begin(prompt.shape, prompt.scratch, prompt.q.data(), out.data(), {leading, own, from});
    on_team(threads, [&](Worker w) { attention.run(w); });
    on_team(threads, [&](Worker w) { attention.reduce(w); });
    for (std::size_t i = 0; i < sums.size() && !testing::Test::HasFatalFailure(); ++i) {
      const std::string where = "query " + std::to_string(static_cast<int>(i) / heads);
      expect_close(std::span(out).subspan(i * d, d), want[i].out, want[i].out_error, where);
      check_logsum(sums[i], want[i], where);
    }
  }

  /// The sum's relative error is at most the largest error of an exponential plus that of the additions; the logarithm
  /// and the largest logit are rounded once each.
  static void check_logsum(float got, const reference::Result& want, const std::string& where) {
    if (want.logit.empty() && want.sink == reference::kNone) {
      EXPECT_EQ(got, -kInfinity) << where;
      return;
    }
    double top = want.sink;
    for (const double logit : want.logit) top = std::max(top, logit);
    double sum = want.sink == reference::kNone ? 0 : std::exp(want.sink - top);
    double error = 0;
    for (std::size_t j = 0; j < want.logit.size(); ++j) {
      sum += std::exp(want.logit[j] - top);
      error = std::max(error, want.weight_error[j] / std::max(want.weight[j], 1e-30));
    }
    const double expected = top + std::log(sum);
    EXPECT_NEAR(static_cast<double>(got), expected,
                error + 4 * reference::kRoundoff * (std::abs(top) + std::abs(expected)))
        << where;
  }
};

TEST(Prefill, queries_may_see_any_number_of_leading_rows_and_one_more) {
  for (const auto& [rows, queries] : {std::pair(2, 1), {70, 65}, {300, 200}}) {
    for (const int group : {1, 3}) {
      Prompt prompt(shape_of(2, group, 80), rows, kScratchTypes[z(rows) % 3]);
      prompt.q = noise(z(queries) * z(prompt.shape.query_heads * prompt.shape.head_dim), 9);
      const Seen seen(rows, queries, 3);
      Seen some = seen;
      some.hide_first(4);
      for (const ComputeType compute_type : all_products()) {
        SCOPED_TRACE(name_of(compute_type));
        prompt.compute_type = compute_type;
        for (const auto& these : {seen, some}) {
          const auto want = these.expected(prompt);
          on_every_target([&] { these.check(prompt, want, 2); });
        }
      }
      if (testing::Test::HasFailure()) return;
    }
  }
}

TEST(Prefill, a_window_ends_with_the_querys_own_key) {
  Prompt prompt(shape_of(2, 3, 64), 530, ElementType::f16);
  for (const int window : {1, 2, 63, 64, 65, 200, 529, 530, 1000}) {
    SCOPED_TRACE("window " + std::to_string(window));
    prompt.shape.window = window;
    for (const ComputeType compute_type : all_products()) {
      prompt.compute_type = compute_type;
      const Expected all(prompt, 0);
      on_every_target([&] {
        for (const int chunk : {7, 512}) all.check(prompt.prefill(0, chunk, 2));
      });
    }
    if (testing::Test::HasFailure()) return;
  }
}

TEST(Prefill, soft_caps_and_sinks_agree_with_double_precision) {
  for (const auto& caps : kCaps) {
    SCOPED_TRACE(testing::Message() << "cap " << caps.cap << ", sinks around " << caps.sink);
    for (const auto& [kv_heads, group, d, n] :
         {std::tuple(2, 3, 64, 330), {1, 7, 80, 200}, {1, 8, 256, 200}, {1, 4, 512, 200}}) {
      Prompt prompt(shape_of(kv_heads, group, d), n, kScratchTypes[z(d) % 3]);
      for (const int window : {0, 70}) {
        prompt.shape.window = window;
        const auto sinks = set_caps(caps, prompt.shape);
        for (const ComputeType compute_type : all_products()) {
          SCOPED_TRACE(name_of(compute_type));
          prompt.compute_type = compute_type;
          const Expected all(prompt, 0);
          on_every_target([&] {
            for (const int chunk : {7, 512}) all.check(prompt.prefill(0, chunk, 2));
          });
        }
        if (testing::Test::HasFailure()) return;
      }
    }
  }
}

TEST(Prefill, soft_caps_and_sinks_are_those_of_any_rows_that_are_seen) {
  for (const auto& caps : kCaps) {
    SCOPED_TRACE(testing::Message() << "cap " << caps.cap << ", sinks around " << caps.sink);
    Prompt prompt(shape_of(2, 3, 80), 300, ElementType::f16);
    prompt.q = noise(z(200) * z(prompt.shape.query_heads * prompt.shape.head_dim), 9);
    const auto sinks = set_caps(caps, prompt.shape);
    Seen seen(300, 200, 3);
    seen.hide_first(4);
    for (const ComputeType compute_type : all_products()) {
      SCOPED_TRACE(name_of(compute_type));
      prompt.compute_type = compute_type;
      const auto want = seen.expected(prompt);
      on_every_target([&] { seen.check(prompt, want, 2); });
    }
    if (testing::Test::HasFailure()) return;
  }
}

TEST(Prefill, keys_that_have_left_the_window_are_not_observed) {
  Prompt prompt(shape_of(1, 3, 64), 300, ElementType::f32);
  prompt.shape.window = 100;
  std::vector<double> want(300);
  std::vector<double> error(300);
  for (int t = 250; t < 300; ++t) {
    const auto row = prompt.expected(t, 0);
    for (std::size_t j = 0; j < row.weight.size(); ++j) {
      want[z(prompt.first_seen(t)) + j] += row.weight[j];
      error[z(prompt.first_seen(t)) + j] += row.weight_error[j] + 50 * reference::kRoundoff * row.weight[j];
    }
  }
  on_every_kernel([&](ComputeType compute_type) {
    if (compute_type != ComputeType::f32) return;
    ColumnStatistics last({{QueryRowSet::Kind::last, 50, {}}, Reduction::sum}, 3, prompt.n);
    ColumnStatistics* const observers[] = {&last};
    prompt.prefill(0, 128, 2, observers);
    expect_close(last.head(0), want, error, "the last 50 rows");
    for (int j = 0; j <= 150; ++j) ASSERT_EQ(last.head(0)[j], 0.0F) << "key " << j;
  });
}

TEST(Prefill, a_prompt_is_the_case_of_seeing_what_is_before) {
  Prompt prompt(shape_of(2, 3, 64), 200, ElementType::f16);
  std::vector<std::int32_t> leading(200);
  std::iota(leading.begin(), leading.end(), 1);
  on_every_kernel([&](ComputeType compute_type) {
    prompt.compute_type = compute_type;
    std::vector<float> out(prompt.q.size());
    cpu::Prefill attention(prompt.account, 1, compute_type);
    attention.begin(prompt.shape, prompt.scratch, prompt.q.data(), out.data(), {leading});
    attention.run({});
    EXPECT_EQ(out, prompt.prefill(0, 200, 1));
  });
}

#ifdef __x86_64__
TEST(Prefill, tiles_that_others_configured_stay_as_they_are) {
  if (!has_amx_bf16()) GTEST_SKIP() << "this machine has no AMX";
  using Configuration = std::array<std::uint8_t, 64>;
  Configuration theirs = {1};  // palette 1, then the bytes of rows of tiles 0 and 1, and their rows
  theirs[16] = 32;
  theirs[18] = 64;
  theirs[48] = 7;
  theirs[49] = 16;
  for (const Configuration& before : {theirs, Configuration{}}) {
    asm volatile("ldtilecfg %0" ::"m"(before) : "memory");
    Prompt prompt(shape_of(1, 3, 64), 100, ElementType::f16);
    prompt.compute_type = ComputeType::bf16;
    prompt.prefill(0, 100, 1);
    Configuration after;
    asm volatile("sttilecfg %0" : "=m"(after)::"memory");
    EXPECT_EQ(after, before);
  }
}
#endif

TEST(Prefill, an_empty_chunk_writes_nothing) {
  Prompt prompt(shape_of(1, 3, 64), 8, ElementType::f16);
  cpu::Prefill attention(prompt.account, 1);
  float untouched = 5;
  attention.begin({prompt.shape, prompt.q.data(), &untouched, 8, 0}, prompt.scratch);
  attention.run({});
  attention.reduce({});
  EXPECT_EQ(untouched, 5);
}

}  // namespace
}  // namespace winnow::attention
