// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "prompt.h"

namespace winnow::device::test {
namespace {

struct Observing {
  PromptShape prompt;
  Reduction reduction = Reduction::sum;
  std::vector<std::int32_t> rows = {};  ///< empty: all
  bool weighted = false;
  int begin = 0;
  int end = std::numeric_limits<int>::max();
  int reach = 0;
  int lag = 0;  ///< distance of a query to the last key at which it is recorded
};

/// Statistics of keys, [heads][stride], and their error bounds.
struct Columns {
  std::vector<double> values;
  std::vector<double> errors;
};

float weight_of(std::size_t observed) { return 0.25F + 0.5F * static_cast<float>(observed % 5); }

class Observed {
 public:
  explicit Observed(const Observing& what) : what_(what), prompt_(what.prompt), rows_(what.rows) {
    for (int i = 0; what.rows.empty() && i < what.prompt.count; ++i) rows_.push_back(i);
    for (std::size_t i = 0; i < rows_.size(); ++i) weights_.push_back(weight_of(i));
    stride_ = std::min(what.end, what.prompt.first + what.prompt.count) - what.begin;
  }

  /// The kernels' result in columns that were filled with `start`.
  std::vector<float> columns(float start) const {
    const Array<float> columns(std::vector<float>(z(what_.prompt.heads) * z(stride_), start));
    const Array<std::int32_t> rows(rows_);
    const Array<float> weights(weights_);
    EXPECT_EQ(winnow_kernels()->prefill(prompt_.task(), nullptr), nullptr);
    const PrefillTask from = prompt_.task();
    const ObserveTask task{.packed = from.packed,
                           .lse = from.lse,
                           .keys = from.keys,
                           .rows = what_.rows.empty() ? nullptr : rows.address(),
                           .weights = what_.weighted ? weights.address() : nullptr,
                           .columns = columns.address(),
                           .element = from.element,
                           .reduction = what_.reduction,
                           .observed = static_cast<std::int32_t>(rows_.size()),
                           .first = from.first - what_.lag,
                           .count = from.count,
                           .heads = from.heads,
                           .kv_heads = from.kv_heads,
                           .dim = from.dim,
                           .capacity = from.capacity,
                           .begin = what_.begin,
                           .end = what_.end,
                           .stride = stride_,
                           .reach = what_.reach,
                           .cap = from.cap};
    EXPECT_EQ(winnow_kernels()->observe(task, nullptr), nullptr);
    return columns.read();
  }

  Columns reference(float start) const {
    Columns out{std::vector<double>(z(what_.prompt.heads) * z(stride_), start), {}};
    out.errors.resize(out.values.size());
    for (int h = 0; h < what_.prompt.heads; ++h) {
      for (std::size_t i = 0; i < rows_.size(); ++i) add(out, h, rows_[i], what_.weighted ? weights_[i] : 1.0F);
    }
    return out;
  }

 private:
  /// Adds one query's weights to the keys. Weights have the errors of logits and sum; f32 sums add theirs.
  void add(Columns& out, int head, int row, float factor) const {
    const auto attended = prompt_.attend(row, head);
    const int last = what_.prompt.first + row - what_.lag;
    const int first = prompt_.first_key(row);
    const int past = prompt_.past_keys(row, head);
    for (int key = std::max(first, what_.begin); key < std::min(last + 1, what_.begin + stride_); ++key) {
      if (what_.reach > 0 && last - key >= what_.reach) continue;
      const std::size_t place = z(past + key - first);
      const double p = attended.weight[place] * factor;
      const double error = 2 * attended.weight_error[place] * factor + 1e-6 * p;
      const std::size_t at = z(head) * z(stride_) + z(key - what_.begin);
      out.values[at] = what_.reduction == Reduction::sum ? out.values[at] + p : std::max(out.values[at], p);
      out.errors[at] = what_.reduction == Reduction::sum ? out.errors[at] + error : std::max(out.errors[at], error);
    }
  }

  Observing what_;
  Prompt prompt_;
  std::vector<std::int32_t> rows_;
  std::vector<float> weights_;
  int stride_;
};

class Observe : public testing::TestWithParam<Observing> {};

TEST_P(Observe, reduces_over_the_observed_rows_as_the_reference_does) {
  SCOPED_TRACE(GetParam().prompt.name());
  SameBits columns;
  in_several_orders([&] {
    const Observed observed(GetParam());
    const auto got = observed.columns(0.125F);
    columns.expect(got);
    const auto want = observed.reference(0.125F);
    for (std::size_t i = 0; i < got.size(); ++i) {
      ASSERT_NEAR(got[i], want.values[i], want.errors[i] + 1e-6 * want.values[i]) << "column " << i;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(
    , Observe,
    testing::Values(
        Observing{{.dim = 64, .count = 130, .heads = 2, .kv_heads = 1}},
        Observing{{.dim = 64, .first = 200, .count = 80, .heads = 2, .kv_heads = 2, .element = Element::f16},
                  Reduction::max},
        Observing{{.dim = 64, .first = 270, .count = 40}, Reduction::sum, {24, 25, 26, 39}, true},
        Observing{{.dim = 64, .first = 100, .count = 100, .window = 30, .sinks = true},
                  Reduction::sum,
                  {},
                  false,
                  90,
                  150,
                  30},
        Observing{{.dim = 64, .first = 290, .count = 70, .cap = 5}, Reduction::max, {}, true, 0, 100, 20},
        Observing{{.dim = 128, .first = 60, .count = 70, .heads = 2, .kv_heads = 1}, Reduction::sum, {0, 69}},
        Observing{{.dim = 64, .first = 62, .count = 20, .element = Element::f16}},
        Observing{{.dim = 64, .first = 63, .count = 10, .element = Element::f16}, Reduction::sum, {}, false, 0, 73, 24},
        Observing{{.dim = 256, .first = 7, .count = 40, .element = Element::f16}},
        Observing{{.dim = 64, .first = 40, .count = 50, .heads = 2, .kv_heads = 2, .past = {90, 3}}}));

/// Each row only at the key that it copies and the next one.
INSTANTIATE_TEST_SUITE_P(
    OfCopies, Observe,
    testing::Values(
        Observing{{.dim = 64, .count = 130, .heads = 4, .kv_heads = 2}, Reduction::max, {}, false, 0, 130, 2, 69},
        Observing{{.dim = 64, .first = 600, .count = 70, .heads = 2, .kv_heads = 1, .element = Element::f16},
                  Reduction::sum,
                  {},
                  true,
                  0,
                  670,
                  2,
                  90},
        Observing{
            {.dim = 64, .first = 20, .count = 90, .cap = 5, .sinks = true}, Reduction::max, {}, true, 5, 80, 2, 30},
        Observing{{.dim = 64, .first = 100, .count = 100, .window = 30, .sinks = true},
                  Reduction::max,
                  {},
                  false,
                  60,
                  200,
                  1,
                  29},
        Observing{{.dim = 128, .first = 270, .count = 40}, Reduction::sum, {0, 24, 25, 39}, true, 0, 300, 2, 14},
        Observing{
            {.dim = 256, .first = 7, .count = 70, .element = Element::f16}, Reduction::max, {}, false, 0, 77, 2, 60},
        Observing{{.dim = 64, .first = 40, .count = 50, .heads = 2, .kv_heads = 2, .past = {90, 3}},
                  Reduction::max,
                  {},
                  false,
                  0,
                  90,
                  2,
                  50}));

// Disabled as in prefill_test.cc.
INSTANTIATE_TEST_SUITE_P(DISABLED_Long, Observe,
                         testing::Values(Observing{{.dim = 128, .first = 131060, .count = 4, .heads = 2}}));

}  // namespace
}  // namespace winnow::device::test
