// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include "fixture.h"

namespace winnow::attention {
namespace {

using Kind = QueryRowSet::Kind;

const std::vector<QueryRowSet> kRows = {
    {Kind::last, 1, {}},
    {Kind::last, 32, {}},
    {Kind::last, 1000, {}},
    {Kind::all, 0, {}},
    {Kind::band, 0, {}},
    {Kind::band, 40, {}},
    {Kind::listed, 0, {0, 3, 64, 150, 151, 170}},
    {Kind::listed, 0, {}},
    {Kind::copies, 0, {}},
};

constexpr int kCopyDistance = 70;

/// Whether row i is observed at key j, as attention.h defines it.
bool observed(const QueryRowSet& rows, int i, int j, int n) {
  switch (rows.kind) {
    case Kind::copies:
      return i - kCopyDistance == j || i - kCopyDistance == j - 1;
    case Kind::last:
      return n - i <= rows.count;
    case Kind::all:
      return true;
    case Kind::band:
      return i - j <= rows.count;
    case Kind::listed:
      return std::find(rows.list.begin(), rows.list.end(), i) != rows.list.end();
  }
  return false;
}

/// Column statistics of one head in double precision, with error bounds for f32.
struct Columns {
  std::vector<double> value;
  std::vector<double> error;
};

Columns expected(const ColumnRequest& what, const std::vector<reference::Result>& matrix) {
  const int n = static_cast<int>(matrix.size());
  Columns c{std::vector<double>(z(n), 0), std::vector<double>(z(n), 0)};
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j <= i; ++j) {
      if (!observed(what.rows, i, j, n)) continue;
      const std::size_t weighted = what.weight.size();
      const double weight = weighted == 0 ? 1 : what.weight[weighted - z(n - i)];
      const double a = weight * matrix[i].weight[j];
      const double e = weight * matrix[i].weight_error[j] + (weighted == 0 ? 0 : a * reference::roundings(2));
      if (what.reduction == Reduction::sum) {
        c.value[j] += a;
        c.error[j] += e + a * reference::roundings(n);  // each term's error, and n - 1 additions
      } else {
        c.value[j] = std::max(c.value[j], a);
        c.error[j] = std::max(c.error[j], e);  // |max a - max b| <= max |a - b|
      }
    }
  }
  return c;
}

/// All kinds of column statistics of one prompt, from one pass.
std::vector<ColumnStatistics> all_columns(const Prompt& prompt) {
  std::vector<ColumnStatistics> out;
  for (const auto& rows : kRows) {
    for (const Reduction reduction : {Reduction::sum, Reduction::max}) {
      out.emplace_back(ColumnRequest{rows, reduction}, prompt.shape.query_heads, prompt.n).begin_copy(kCopyDistance);
    }
  }
  for (const Reduction reduction : {Reduction::sum, Reduction::max}) {
    ColumnRequest what{{Kind::last, 50, {}}, reduction, {}, {}};
    for (int i = 0; i < 50; ++i) what.weight.push_back(0.3F + 0.17F * static_cast<float>(i % 7));
    out.emplace_back(std::move(what), prompt.shape.query_heads, prompt.n);
  }
  return out;
}

std::vector<ColumnStatistics*> pointers(std::vector<ColumnStatistics>& columns) {
  std::vector<ColumnStatistics*> out;
  for (auto& o : columns) out.push_back(&o);
  return out;
}

/// The attention matrix of each query head.
std::vector<std::vector<reference::Result>> matrices(const Prompt& prompt) {
  std::vector<std::vector<reference::Result>> out(z(prompt.shape.query_heads));
  for (int h = 0; h < prompt.shape.query_heads; ++h) {
    for (int i = 0; i < prompt.n; ++i) out[h].push_back(prompt.expected(i, h));
  }
  return out;
}

void check_every_kind_and_reduction(const Caps& caps) {
  for (const int group : {1, 3, 7}) {
    Prompt prompt(shape_of(2, group, 64), 193, ElementType::f16);
    const auto sinks = set_caps(caps, prompt.shape);
    for (const ComputeType compute_type : all_products()) {
      SCOPED_TRACE(name_of(compute_type));
      prompt.compute_type = compute_type;
      std::vector<std::vector<Columns>> wanted;
      for (const auto& matrix : matrices(prompt)) {
        auto& of_head = wanted.emplace_back();
        for (const auto& statistics : all_columns(prompt)) of_head.push_back(expected(statistics.request(), matrix));
      }
      on_every_target([&] {
        for (const int chunk : {1, 7, 100, 512}) {
          auto columns = all_columns(prompt);
          prompt.prefill(0, chunk, 1, pointers(columns));
          for (std::size_t i = 0; i < columns.size(); ++i) {
            for (int h = 0; h < prompt.shape.query_heads; ++h) {
              const auto& want = wanted[z(h)][i];
              expect_close(columns[i].head(h), want.value, want.error,
                           "statistics " + std::to_string(i) + ", head " + std::to_string(h) + ", chunks of " +
                               std::to_string(chunk));
              if (testing::Test::HasFatalFailure()) return;
            }
          }
        }
      });
    }
    if (testing::Test::HasFailure()) return;
  }
}

TEST(ColumnStatistics, every_kind_and_reduction_agrees_with_double_precision) {
  check_every_kind_and_reduction({0, kNoSinks});
}

TEST(ColumnStatistics, with_soft_caps_and_sinks_it_is_of_what_attention_is) {
  for (const auto& caps : kCaps) {
    SCOPED_TRACE(testing::Message() << "cap " << caps.cap << ", sinks around " << caps.sink);
    check_every_kind_and_reduction(caps);
  }
}

/// The softmax of power times the logits. Relative to p = softmax(logits), whose error the reference bounds, the error
/// of p^power is power times as large; a logarithm (4 units in its last place, Highway's bound), two products and an
/// exponential (1 unit) add u (12 |power ln p| + 8).
Columns expected_powers(const std::vector<float>& power, const std::vector<reference::Result>& matrix) {
  const std::size_t n = matrix.size();
  const std::size_t keys = matrix.back().weight.size();
  Columns c{std::vector<double>(keys, 0), std::vector<double>(keys, 0)};
  for (std::size_t r = 0; r < power.size(); ++r) {
    const auto& row = matrix[n - power.size() + r];
    std::vector<double> raised;
    std::vector<double> error;
    double sum = 0;
    double mean_error = 0;
    if (row.sink != reference::kNone) {
      const double weight = std::max(row.sink_weight, 0x1p-126);
      const double x = power[r] * std::log(weight);
      sum = std::exp(x);
      mean_error = sum * (power[r] * row.sink_error / weight + reference::kRoundoff * (12 * std::abs(x) + 8));
    }
    for (std::size_t j = 0; j < row.weight.size(); ++j) {
      const double x = power[r] * std::log(row.weight[j]);
      raised.push_back(std::exp(x));
      error.push_back(power[r] * row.weight_error[j] / row.weight[j] + reference::kRoundoff * (12 * std::abs(x) + 8));
      sum += raised[j];
      mean_error += raised[j] * error[j];
    }
    mean_error /= sum;
    for (std::size_t j = 0; j < raised.size(); ++j) {
      const double a = raised[j] / sum;
      c.value[j] += a;
      c.error[j] +=
          a * (error[j] + mean_error + 2 * reference::roundings(static_cast<double>(keys)) + 2 * reference::kRoundoff);
    }
  }
  return c;
}

/// The powers of the last `rows` rows; some are 0.
ColumnRequest multiplied(int rows) {
  ColumnRequest what{{Kind::last, rows, {}}, Reduction::sum, {}};
  for (int r = 0; r < rows; ++r) what.power.push_back(r % 5 == 4 ? 0.0F : 0.5F + 0.4F * static_cast<float>(r % 5));
  return what;
}

void check_multiplied_logits(Prompt& prompt, const std::vector<std::vector<reference::Result>>& matrix, int rows) {
  const auto what = multiplied(rows);
  std::vector<Columns> wanted;
  for (const auto& of_head : matrix) wanted.push_back(expected_powers(what.power, of_head));
  on_every_target([&] {
    for (const int chunk : {7, 100, 512}) {
      std::vector<ColumnStatistics> o;
      o.emplace_back(what, prompt.shape.query_heads, prompt.n);
      prompt.prefill(0, chunk, 2, pointers(o));
      for (int h = 0; h < prompt.shape.query_heads; ++h) {
        expect_close(o[0].head(h), wanted[z(h)].value, wanted[z(h)].error,
                     "head " + std::to_string(h) + ", chunks of " + std::to_string(chunk));
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  });
}

void check_multiplied_logits(const Caps& caps) {
  for (const int group : {1, 3, 7}) {
    Prompt prompt(shape_of(2, group, 64), 193, ElementType::f16);
    const auto sinks = set_caps(caps, prompt.shape);
    for (const ComputeType compute_type : all_products()) {
      SCOPED_TRACE(name_of(compute_type));
      prompt.compute_type = compute_type;
      const auto matrix = matrices(prompt);
      for (const int rows : {1, 32, 193}) {
        check_multiplied_logits(prompt, matrix, rows);
        if (testing::Test::HasFailure()) return;
      }
    }
  }
}

TEST(ColumnStatistics, softmax_of_multiplied_logits_agrees_with_double_precision) {
  check_multiplied_logits({0, kNoSinks});
}

TEST(ColumnStatistics, softmax_of_multiplied_logits_has_the_sink_multiplied_too) {
  for (const auto& caps : kCaps) {
    SCOPED_TRACE(testing::Message() << "cap " << caps.cap << ", sinks around " << caps.sink);
    check_multiplied_logits(caps);
  }
}

/// A prompt that follows other tokens: probabilities are over everything that a row sees, but only the prompt's own
/// keys are recorded.
TEST(ColumnStatistics, after_other_tokens_is_of_the_prompt_s_own_keys) {
  Prompt prompt(shape_of(2, 3, 64), 300, ElementType::f16);
  const auto sinks = set_caps({0, 3}, prompt.shape);
  on_every_kernel([&](ComputeType compute_type) {
    prompt.compute_type = compute_type;
    Later later(prompt, 140, {140, 70});
    Prompt own(prompt.shape, later.n(), ElementType::f16);  // for observed() alone
    auto columns = all_columns(own);
    ColumnRequest powers{{Kind::last, 40, {}}, Reduction::sum, std::vector<float>(40, 1.7F)};
    columns.emplace_back(powers, prompt.shape.query_heads, later.n());
    for (const int chunk : {7, 512}) {
      for (auto& o : columns) o.begin_layer(prompt.shape.query_heads);
      later.prefill(chunk, 2, pointers(columns));
      for (int h = 0; h < prompt.shape.query_heads; ++h) {
        const auto past = later.kept[z(h / 3)];
        std::vector<reference::Result> rows;
        for (int token = later.first; token < prompt.n; ++token) rows.push_back(later.expected(token, h));
        const auto raised = expected_powers(powers.power, rows);
        for (auto& row : rows) {
          row.weight.erase(row.weight.begin(), row.weight.begin() + past);
          row.weight_error.erase(row.weight_error.begin(), row.weight_error.begin() + past);
        }
        for (std::size_t i = 0; i + 1 < columns.size(); ++i) {
          const auto want = expected(columns[i].request(), rows);
          expect_close(columns[i].head(h), want.value, want.error, "statistics " + std::to_string(i));
        }
        expect_close(columns.back().head(h), std::span(raised.value).subspan(z(past), z(later.n())),
                     std::span(raised.error).subspan(z(past), z(later.n())), "powers, head " + std::to_string(h));
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  });
}

TEST(ColumnStatistics, threads_do_not_change_a_bit) {
  Prompt prompt(shape_of(3, 3, 64), 600, ElementType::f16);
  on_every_kernel([&](ComputeType compute_type) {
    prompt.compute_type = compute_type;
    auto one = all_columns(prompt);
    prompt.prefill(0, 256, 1, pointers(one));
    for (const int threads : {2, 3}) {
      auto several = all_columns(prompt);
      prompt.prefill(0, 256, threads, pointers(several));
      for (std::size_t i = 0; i < one.size(); ++i) {
        for (int h = 0; h < prompt.shape.query_heads; ++h)
          ASSERT_TRUE(std::ranges::equal(one[i].head(h), several[i].head(h))) << i;
      }
    }
  });
}

std::vector<ColumnStatistics> sums_over_all(const Prompt& prompt) {
  std::vector<ColumnStatistics> out;
  for (const auto& rows : {QueryRowSet{Kind::all, 0, {}}, QueryRowSet{Kind::band, 40, {}}})
    out.emplace_back(ColumnRequest{rows, Reduction::sum}, prompt.shape.query_heads, prompt.n);
  return out;
}

/// Prompts whose blocks are narrower than a unit of sums, as wide, and wider.
struct SummedPrompt {
  int kv_heads;
  int group;
  int head_dim;
  int tokens;
};
constexpr SummedPrompt kSummedPrompts[] = {{2, 3, 32, 500}, {1, 7, 16, 430}, {2, 1, 16, 1700}, {1, 40, 8, 300}};

void expect_same(const std::vector<ColumnStatistics>& a, const std::vector<ColumnStatistics>& b, const char* what) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (int h = 0; h < a[i].query_heads(); ++h)
      EXPECT_TRUE(std::ranges::equal(a[i].head(h), b[i].head(h))) << what << ", columns " << i << ", head " << h;
  }
}

TEST(ColumnStatistics, sums_have_the_same_bits_in_chunks_of_whole_units) {
  on_every_kernel([](ComputeType compute_type) {
    for (const auto& sizes : kSummedPrompts) {
      Prompt prompt(shape_of(sizes.kv_heads, sizes.group, sizes.head_dim), sizes.tokens, ElementType::f16);
      prompt.compute_type = compute_type;
      auto whole = sums_over_all(prompt);
      prompt.prefill(0, prompt.n, 1, pointers(whole));
      for (const int chunk : {64, 192, 256}) {
        auto parts = sums_over_all(prompt);
        prompt.prefill(0, chunk, 2, pointers(parts));
        expect_same(parts, whole, "chunks");
      }
    }
  });
}

TEST(ColumnStatistics, continue_from_a_state_with_the_same_bits) {
  on_every_kernel([](ComputeType compute_type) {
    for (const auto& sizes : kSummedPrompts) {
      Prompt prompt(shape_of(sizes.kv_heads, sizes.group, sizes.head_dim), sizes.tokens, ElementType::f16);
      prompt.compute_type = compute_type;
      auto whole = sums_over_all(prompt);
      prompt.prefill(0, 256, 1, pointers(whole));
      for (const int rows : {64, 192, 256}) {
        // The state is taken in the midst of a chunk of a shorter prompt.
        std::vector<std::vector<float>> states;
        Prompt shorter(prompt.shape, rows + 37, ElementType::f16);  // with the same numbers
        shorter.compute_type = compute_type;
        auto before = sums_over_all(shorter);
        for (auto& one : before) {
          auto& state = states.emplace_back(z(rows) * z(one.query_heads()));
          one.keep_state(rows, state.data());
        }
        shorter.prefill(0, 256, 2, pointers(before));
        auto after = sums_over_all(prompt);
        for (std::size_t i = 0; i < after.size(); ++i) after[i].take_state(rows, states[i].data());
        prompt.prefill(rows, 256, 2, pointers(after));
        expect_same(after, whole, "a state");
      }
    }
  });
}

TEST(ColumnStatistics, records_chosen_keys_as_if_all_were_recorded) {
  Prompt prompt(shape_of(2, 3, 64), 193, ElementType::f16);
  on_every_kernel([&](ComputeType compute_type) {
    prompt.compute_type = compute_type;
    for (const int chunk : {7, 100, 512}) {
      auto all = all_columns(prompt);
      const auto out = prompt.prefill(0, chunk, 2, pointers(all));
      for (const auto& [begin, end] :
           {std::pair{0, 1}, {0, 64}, {10, 130}, {64, 128}, {150, 193}, {192, 193}, {20, 20}}) {
        auto some = all_columns(prompt);
        EXPECT_EQ(prompt.prefill(0, chunk, 2, pointers(some), {begin, end}), out);
        for (std::size_t i = 0; i < all.size(); ++i) {
          for (int h = 0; h < prompt.shape.query_heads; ++h) {
            for (int j = 0; j < prompt.n; ++j) {
              ASSERT_EQ(some[i].head(h)[j], j >= begin && j < end ? all[i].head(h)[j] : 0.0F)
                  << i << " " << j << " " << chunk;
            }
          }
        }
      }
    }
  });
}

TEST(ColumnStatistics, needs_no_room_for_keys_that_are_not_recorded) {
  Prompt prompt(shape_of(1, 3, 64), 200, ElementType::f16);
  std::vector<ColumnStatistics> all;
  all.emplace_back(ColumnRequest{{Kind::all, 0, {}}, Reduction::max}, 3, 200);
  std::vector<ColumnStatistics> few;
  few.emplace_back(ColumnRequest{{Kind::all, 0, {}}, Reduction::max}, 3, 100);
  prompt.prefill(100, 64, 2, pointers(all));
  prompt.prefill(100, 64, 2, pointers(few), {70, 100});
  for (int h = 0; h < 3; ++h) {
    for (int j = 70; j < 100; ++j) EXPECT_EQ(few[0].head(h)[j], all[0].head(h)[j]);
  }
}

/// Powers of two change no rounding, so the maximum equals that of single rows, each multiplied by its scale.
TEST(ColumnStatistics, rows_count_by_their_scales) {
  Prompt prompt(shape_of(1, 3, 64), 150, ElementType::f16);
  const std::vector<std::int32_t> rows = {3, 40, 64, 100, 149};
  std::vector<float> scales(150, 1);
  for (std::size_t i = 0; i < rows.size(); ++i) scales[z(rows[i])] = std::ldexp(1.0F, static_cast<int>(i % 3) - 2);
  on_every_kernel([&](ComputeType compute_type) {
    prompt.compute_type = compute_type;
    std::vector<ColumnStatistics> o;
    for (const auto row : rows) o.emplace_back(ColumnRequest{{Kind::listed, 0, {row}}, Reduction::max}, 3, prompt.n);
    ColumnRequest all{{Kind::listed, 0, rows}, Reduction::max};
    all.scale = RowScale::inverse_input;
    o.emplace_back(all, 3, prompt.n);
    prompt.prefill(0, 64, 2, pointers(o), {}, scales);
    for (int h = 0; h < 3; ++h) {
      for (int j = 0; j < prompt.n; ++j) {
        float most = 0;
        for (std::size_t i = 0; i < rows.size(); ++i) most = std::max(most, scales[z(rows[i])] * o[i].head(h)[j]);
        ASSERT_EQ(o.back().head(h)[j], most) << h << " " << j;
      }
    }
  });
}

TEST(ColumnStatistics, leaves_the_output_right) {
  Prompt prompt(shape_of(1, 3, 64), 300, ElementType::f16);
  on_every_kernel([&](ComputeType compute_type) {
    prompt.compute_type = compute_type;
    auto columns = all_columns(prompt);
    const auto with = prompt.prefill(0, 512, 1, pointers(columns));
    for (int t = 0; t < prompt.n; t += 11) {
      for (int h = 0; h < 3; ++h) {
        const auto want = prompt.expected(t, h);
        expect_close(std::span(with).subspan((z(t) * 3 + z(h)) * 64, 64), want.out, want.out_error,
                     "token " + std::to_string(t));
      }
    }
  });
}

TEST(ColumnStatistics, sums_over_all_rows_add_up_to_the_number_of_rows) {
  // With 4,097 tokens, the retained probabilities of a block extend over many tiles, and blocks become narrower.
  Prompt prompt(shape_of(1, 3, 64), 4097, ElementType::bf16);
  on_every_kernel([&](ComputeType compute_type) {
    prompt.compute_type = compute_type;
    std::vector<ColumnStatistics> columns;
    columns.emplace_back(ColumnRequest{{Kind::all, 0, {}}, Reduction::sum}, 3, prompt.n);
    // The last 512 rows suffice.
    prompt.prefill(prompt.n - 512, 256, 2, pointers(columns));
    for (int h = 0; h < 3; ++h) {
      const auto sums = columns[0].head(h);
      const double total = std::accumulate(sums.begin(), sums.end(), 0.0);
      // A row's weights add up to 1 but for n additions, n exponentials and a division; the logits' errors cancel.
      const double own = compute_type == ComputeType::bf16 ? reference::kRoundoffBf16 : 0;  // rounding of each weight
      EXPECT_NEAR(total, 512, 512 * (own + 2 * reference::roundings(3.0 * prompt.n)));
    }
  });
}

TEST(ColumnStatistics, maxima_lie_between_the_mean_and_one) {
  Prompt prompt(shape_of(2, 3, 96), 257, ElementType::f16);
  on_every_kernel([&](ComputeType compute_type) {
    prompt.compute_type = compute_type;
    std::vector<ColumnStatistics> o;
    o.emplace_back(ColumnRequest{{Kind::all, 0, {}}, Reduction::sum}, 6, prompt.n);
    o.emplace_back(ColumnRequest{{Kind::all, 0, {}}, Reduction::max}, 6, prompt.n);
    prompt.prefill(0, 100, 1, pointers(o));
    for (int h = 0; h < 6; ++h) {
      EXPECT_EQ(o[1].head(h)[0], 1.0F);  // the first row sees only the first key
      for (int j = 0; j < prompt.n; ++j) {
        const float rows = static_cast<float>(prompt.n - j);
        // Both come from the same f32 probabilities: only the sum's own roundings can lift the mean above the maximum.
        EXPECT_LE(o[0].head(h)[j] / rows, o[1].head(h)[j] * (1 + 2 * prompt.n * reference::kRoundoff));
        EXPECT_LE(o[1].head(h)[j], 1 + reference::roundings(3 * prompt.n));
      }
    }
  });
}

}  // namespace
}  // namespace winnow::attention
