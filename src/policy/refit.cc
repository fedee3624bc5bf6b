// SPDX-License-Identifier: Apache-2.0
#include "policy/refit.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

#include "attention/products.h"
#include "base/as_size.h"
#include "base/rope.h"
#include "cache/keep_plan.h"
#include "cache/scratch.h"
#include "policy/observers/query_rows.h"
#include "policy/ridged.h"
#include "policy/rows.h"

namespace winnow::policy {

namespace {

struct Fit {
  int rows;       ///< last queries of the prompt
  int recent;     ///< last tokens that each query sees, its own included, kept or not
  double lambda;  ///< regularisation, relative to the squared norm of the probabilities
};

/// Rows of numbers.
struct Matrix {
  std::size_t columns;
  CountedVector<float> all;

  Matrix(std::size_t rows, std::size_t of_columns) : columns(of_columns), all(rows * of_columns) {}
  std::size_t rows() const { return columns == 0 ? 0 : all.size() / columns; }
  std::span<float> row(std::size_t i) { return std::span(all).subspan(i * columns, columns); }
  std::span<const float> row(std::size_t i) const { return std::span(all).subspan(i * columns, columns); }
};

Matrix transposed(const Matrix& matrix) {
  Matrix out(matrix.columns, matrix.rows());
  for (std::size_t i = 0; i < matrix.rows(); ++i) {
    for (std::size_t j = 0; j < matrix.columns; ++j) out.all[j * out.columns + i] = matrix.row(i)[j];
  }
  return out;
}

Eigen::MatrixXd doubles(const Matrix& matrix) {
  const auto size = [](std::size_t n) { return static_cast<Eigen::Index>(n); };
  return Eigen::Map<const RowMajor<float>>(matrix.all.data(), size(matrix.rows()), size(matrix.columns)).cast<double>();
}

/// Products left_i · right_j. Both have the same number of columns.
Matrix products(const Matrix& left, const Matrix& right) {
  const attention::PackedRows packed(right.all, static_cast<int>(right.columns));
  const auto stride = as_size(packed.stride());
  CountedVector<float> padded(left.rows() * stride);
  packed.multiply(left.all, padded);
  Matrix out(left.rows(), right.rows());
  for (std::size_t i = 0; i < left.rows(); ++i)
    std::copy_n(padded.begin() + static_cast<std::ptrdiff_t>(i * stride), out.columns, out.row(i).begin());
  return out;
}

/// A key that queries read, and its value: that of a kept entry, or of a recent token that is not kept.
struct Read {
  std::int32_t row;    ///< in the prompt; earlier queries do not read it
  std::size_t value;   ///< index among kept entries, then recent tokens
  std::int32_t until;  ///< the last row that reads it
};

/// The first of the recent tokens that queries see, kept or not.
int first_recent(const Fit& fit, const attention::QueryRows& queries, int tokens) {
  return fit.recent > 0 && queries.size() > 0 ? std::max(0, queries.row(0) - fit.recent + 1) : tokens;
}

/// Fits the values of one KV head. REQUIRES: its kept entries and recent tokens have been fetched.
class HeadFit {
 public:
  HeadFit(const Fit& fit, const LayerView& view, const attention::QueryRows& queries, int head,
          const cache::KeepPlan& plan)
      : fit_(fit),
        view_(view),
        queries_(queries),
        head_(head),
        dim_(as_size(view.shape.head_dim)),
        keys_(0, dim_),
        values_(0, dim_) {
    add_kept(plan);
    kept_ = values_.rows();
    add_recent();
  }

  /// Values to store for the kept entries, [kept][d].
  std::vector<float> fitted() const {
    if (kept_ == 0) return {};  // other heads have the whole budget
    Matrix on_kept(rows(), kept_);
    const Matrix missing = missing_beside(on_kept);
    const Matrix change = products(transposed(on_kept), transposed(weights(on_kept, missing)));
    std::vector<float> out(values_.all.begin(), values_.all.begin() + static_cast<std::ptrdiff_t>(kept_ * dim_));
    // If a prompt makes NaN or infinity, values are not changed; attention will report it.
    const bool is_finite = std::ranges::all_of(change.all, [](float x) { return std::isfinite(x); });
    for (std::size_t i = 0; is_finite && i < out.size(); ++i) out[i] += change.all[i];
    return out;
  }

 private:
  std::span<const std::int32_t> positions() const { return view_.scratch.positions(); }
  // Rows are ordered by query, then by query head of the group.
  std::size_t rows() const { return as_size(queries_.size()) * as_size(view_.shape.group()); }
  int row_of(std::size_t i) const { return static_cast<int>(i) / view_.shape.group(); }
  int query_head_of(std::size_t i) const {
    return head_ * view_.shape.group() + static_cast<int>(i) % view_.shape.group();
  }

  void read_key(int row, std::span<float> out) const {
    cache::decode_row(view_.scratch.type(), view_.scratch.fetched_keys(head_).row(row), out);
  }
  void read_value(int row, std::span<float> out) const {
    cache::decode_row(view_.scratch.type(), view_.scratch.fetched_values(head_).row(row), out);
  }

  void add(const Read& read, std::span<const float> key) {
    reads_.push_back(read);
    keys_.all.insert(keys_.all.end(), key.begin(), key.end());
  }

  void add_value(std::span<const float> value) { values_.all.insert(values_.all.end(), value.begin(), value.end()); }

  /// Adds kept entries as the lane will store them, and the entries merged into them.
  void add_kept(const cache::KeepPlan& plan) {
    const auto head = as_size(head_);
    const auto& kept = plan.heads[head];
    const auto stored = [&](const std::vector<std::vector<float>>& all, std::size_t i) {
      return all.empty() || all[head].empty() ? std::span<const float>() : std::span(all[head]).subspan(i * dim_, dim_);
    };
    constexpr auto kEnd = std::numeric_limits<std::int32_t>::max();
    std::vector<float> vector(dim_);
    for (std::size_t i = 0; i < kept.size(); ++i) {
      read_key(kept[i], vector);
      if (const auto key = stored(plan.keys, i); !key.empty()) rotate(key, 1, kept[i], vector);
      add({kept[i], i, kEnd}, vector);
      read_value(kept[i], vector);
      const auto value = stored(plan.values, i);
      add_value(value.empty() ? vector : value);
    }
    if (plan.merged_entries.empty()) return;
    for (const auto& joined : plan.merged_entries[head]) {
      rotate(stored(plan.keys, as_size(joined.centre)), joined.scale, joined.row, vector);
      add({joined.row, as_size(joined.centre), kEnd}, vector);
    }
  }

  /// Rotates a key before RoPE to the position of a row, and scales it.
  void rotate(std::span<const float> key, float scale, std::int32_t row, std::span<float> out) const {
    for (std::size_t c = 0; c < dim_; ++c) out[c] = scale * key[c];
    view_.rope.shift(out.data(), positions()[as_size(row)]);
  }

  /// Adds the tokens near the queries that are not kept.
  void add_recent() {
    std::vector<bool> is_there(as_size(view_.tokens()));
    for (const auto& read : reads_) is_there[as_size(read.row)] = true;
    std::vector<float> vector(dim_);
    for (int j = first_recent(fit_, queries_, view_.tokens()); j < view_.tokens(); ++j) {
      if (is_there[as_size(j)]) continue;
      read_key(j, vector);
      add({j, values_.rows(), j + fit_.recent - 1}, vector);
      read_value(j, vector);
      add_value(vector);
    }
  }

  /// Difference of the full outputs and those of attention to the kept entries, [row][d]. Fills `on_kept` with the
  /// probabilities of kept entries, [row][kept].
  Matrix missing_beside(Matrix& on_kept) const {
    const Matrix probabilities = attended();
    for (std::size_t i = 0; i < rows(); ++i) std::copy_n(probabilities.row(i).begin(), kept_, on_kept.row(i).begin());
    Matrix out = products(probabilities, transposed(values_));
    for (std::size_t i = 0; i < rows(); ++i) {
      const auto full = queries_.output(row_of(i), query_head_of(i));
      for (std::size_t c = 0; c < dim_; ++c) out.row(i)[c] = full[c] - out.row(i)[c];
    }
    return out;
  }

  /// Softmax of each row over the entries that it reads, [row][value].
  Matrix attended() const {
    Matrix queries(0, dim_);
    for (std::size_t i = 0; i < rows(); ++i) {
      const auto query = queries_.query(row_of(i), query_head_of(i));
      queries.all.insert(queries.all.end(), query.begin(), query.end());
    }
    Matrix logits = products(queries, keys_);
    Matrix out(rows(), values_.rows());
    for (std::size_t i = 0; i < rows(); ++i) softmax(i, logits.row(i), out.row(i));
    return out;
  }

  void softmax(std::size_t i, std::span<float> logits, std::span<float> out) const {
    const int row = queries_.row(row_of(i));
    const auto sink = view_.shape.sink_of(query_head_of(i));
    float most = sink.empty() ? -std::numeric_limits<float>::infinity() : sink[0];
    for (std::size_t r = 0; r < reads_.size(); ++r) {
      const bool sees = reads_[r].row <= row && row <= reads_[r].until;
      logits[r] = sees ? view_.shape.logit(logits[r]) : -std::numeric_limits<float>::infinity();
      most = std::max(most, logits[r]);
    }
    if (std::isinf(most)) return;  // it reads nothing
    double sum = sink.empty() ? 0 : std::exp(sink[0] - most);
    for (float& x : logits) sum += x = std::exp(x - most);
    for (std::size_t r = 0; r < reads_.size(); ++r) out[reads_[r].value] += static_cast<float>(logits[r] / sum);
  }

  /// (X X^T + lambda |X|^2)^-1 missing, [row][d], for the rows X of probabilities. X^T times the result is the change
  /// of the values.
  Matrix weights(const Matrix& on_kept, const Matrix& missing) const {
    const Matrix gram = products(on_kept, on_kept);
    Eigen::MatrixXd ridged = doubles(gram);
    const double ridge = fit_.lambda * ridged.trace();
    ridged.diagonal().array() += ridge;
    const RowMajor<float> solved = Ridged(ridged, ridge).solve(doubles(missing)).cast<float>();
    Matrix out(missing.rows(), dim_);
    out.all.assign(solved.data(), solved.data() + solved.size());
    return out;
  }

  const Fit& fit_;
  const LayerView& view_;
  const attention::QueryRows& queries_;
  int head_;
  std::size_t dim_;
  std::vector<Read> reads_;
  Matrix keys_;           ///< [read]
  Matrix values_;         ///< [kept entry, then recent token]
  std::size_t kept_ = 0;  ///< number of kept entries
};

/// Recent tokens that a plan does not keep, ascending for each head.
std::vector<std::vector<std::int32_t>> recent_tokens(const Fit& fit, const LayerView& view,
                                                     const attention::QueryRows& queries, const cache::KeepPlan& plan) {
  std::vector<std::vector<std::int32_t>> out;
  for (const auto& kept : plan.heads) {
    auto& tokens = out.emplace_back();
    for (int j = first_recent(fit, queries, view.tokens()); j < view.tokens(); ++j) {
      if (!std::ranges::binary_search(kept, j)) tokens.push_back(j);
    }
  }
  return out;
}

/// Peak bytes of one head.
std::size_t fit_bytes(const Fit& fit, const LayerPrompt& prompt, double reads) {
  const auto rows = as_size(std::min(fit.rows, prompt.tokens)) * as_size(prompt.group);
  const auto all = static_cast<std::size_t>(std::ceil(reads)) + as_size(fit.rows) + as_size(fit.recent);
  return 4 * (rows + as_size(prompt.head_dim)) * all * sizeof(float) + 3 * rows * rows * sizeof(double);
}

}  // namespace

std::vector<Option> refit_options() {
  return {{"rows", Option::Integer{64, 1, 512}, "last queries of the prompt, to whose outputs values are fitted"},
          {"recent", Option::Integer{32, 0, 512}, "last tokens that each of these queries sees, kept or not"},
          {"lambda", Option::Number{1e-3, 1e-6, 1}, "strength of the pull towards the original values"}};
}

void refit_values(Method& method, const Options& options) {
  const Fit fit{options.integer("rows"), options.integer("recent"), options.number("lambda")};
  const auto queries =
      method.observers.add(observe_rows(fmt::format("the last {}", fit.rows),
                                        [fit](const LayerPrompt& prompt) {
                                          const int count = std::min(fit.rows, prompt.tokens);
                                          return attention::QueryRowSet{attention::QueryRowSet::Kind::last, count, {}};
                                        }),
                           {.keeping = true});
  const MergePart before = method.lanes.merge;
  method.lanes.merge = {(before ? before.text + ", then " : "") + "values that reproduce the last queries' outputs",
                        [fit, before, queries](const LayerView& view, const Scores& scores,
                                               const AlwaysKept& always_kept, cache::KeepPlan& plan) {
                          if (before) before.call(view, scores, always_kept, plan);
                          if (view[queries].size() == 0) return;
                          plan.values.resize(plan.heads.size());
                          fetch(view, plan, recent_tokens(fit, view, view[queries], plan));
                          for (int head = 0; head < view.shape.kv_heads; ++head)
                            plan.values[as_size(head)] = HeadFit(fit, view, view[queries], head, plan).fitted();
                        }};
  method.lanes.merge_bytes = [fit, merged = method.lanes.merged_entries](const LayerPrompt& prompt, int entries) {
    return fit_bytes(fit, prompt, (1 + merged) * entries);
  };
}

}  // namespace winnow::policy
