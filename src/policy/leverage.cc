// SPDX-License-Identifier: Apache-2.0
#include "policy/leverage.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "attention/products.h"
#include "base/as_size.h"
#include "policy/counter_random.h"
#include "policy/ridged.h"
#include "policy/rows.h"

namespace winnow::policy {

namespace {

constexpr double kRidge = 0.01;
constexpr int kRowsTogether = 256;  // rows whose products are summed in f32

/// Random directions [k][d], determined by seed, layer and head.
std::vector<float> directions(const LayerView& view, int head, const Sketch& sketch) {
  std::vector<float> out(as_size(sketch.dimensions) * as_size(view.shape.head_dim));
  const double scale = 1 / std::sqrt(static_cast<double>(sketch.dimensions));
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto uniform = [&](std::size_t which) {
      return uniform_at(sketch.seed, view.number, head, static_cast<int>(2 * i + which));
    };
    const double length = std::sqrt(-2 * std::log(1 - uniform(0)));  // Box and Muller, 1958
    out[i] = static_cast<float>(scale * length * std::cos(2 * std::numbers::pi * uniform(1)));
  }
  return out;
}

/// Appends rows of `columns` numbers without the padding at the end of each.
void append(std::span<const float> rows, int stride, int columns, CountedVector<float>& to) {
  for (auto row = rows.begin(); row != rows.end(); row += stride) to.insert(to.end(), row, row + columns);
}

/// Angles that undo each key's rotation, [n][2 pairs]; the same for all heads.
CountedVector<float> angles_back(const LayerView& view) {
  const std::size_t width = 2 * view.rope.frequency.size();
  CountedVector<float> out(as_size(view.tokens()) * width);
  for (std::size_t j = 0; j < as_size(view.tokens()); ++j)
    view.rope.angles(-static_cast<std::int64_t>(view.scratch.positions()[j]), out.data() + j * width);
  return out;
}

/// Keys of entries [first, end) before RoPE, times the directions: [end - first][k].
CountedVector<float> sketched(const LayerView& view, int head, const Sketch& sketch, int first, int end,
                              const CountedVector<float>& back) {
  const auto dim = as_size(view.shape.head_dim);
  const attention::PackedRows by(directions(view, head, sketch), view.shape.head_dim);
  CountedVector<float> out;
  out.reserve(as_size(end - first) * as_size(sketch.dimensions));
  std::vector<float> rows(kRowsTogether * dim);
  std::vector<float> products(kRowsTogether * as_size(by.stride()));
  for (int next = first; next < end; next += kRowsTogether) {
    const int count = std::min(kRowsTogether, end - next);
    for (int i = 0; i < count; ++i) {
      const auto key = std::span(rows).subspan(as_size(i) * dim, dim);
      view.key(head, next + i, key);
      view.rope.rotate(key.data(), back.data() + as_size(next + i) * 2 * view.rope.frequency.size());
      stretch(view.rope, 1 / view.rope.magnitude, key);
    }
    by.multiply(std::span(rows).first(as_size(count) * dim), products);
    append(std::span(products).first(as_size(count * by.stride())), by.stride(), sketch.dimensions, out);
  }
  return out;
}

void centre(CountedVector<float>& rows, std::size_t columns) {
  std::vector<double> sums(columns);
  for (std::size_t first = 0; first < rows.size(); first += columns) {
    for (std::size_t c = 0; c < columns; ++c) sums[c] += rows[first + c];
  }
  const std::size_t n = rows.size() / columns;
  std::vector<float> mean;
  for (const double sum : sums) mean.push_back(static_cast<float>(sum / static_cast<double>(n)));
  for (std::size_t first = 0; first < rows.size(); first += columns) {
    for (std::size_t c = 0; c < columns; ++c) rows[first + c] -= mean[c];
  }
}

/// Gram matrix of the columns, [k][k].
Eigen::MatrixXd gram(const CountedVector<float>& rows, std::size_t columns) {
  Eigen::MatrixXd out = Eigen::MatrixXd::Zero(static_cast<int>(columns), static_cast<int>(columns));
  const std::size_t n = rows.size() / columns;
  for (std::size_t first = 0; first < n; first += kRowsTogether) {
    const std::size_t count = std::min(as_size(kRowsTogether), n - first);
    const auto some = std::span(rows).subspan(first * columns, count * columns);
    std::vector<float> elements(columns * count);  // [k][count]
    for (std::size_t c = 0; c < columns; ++c) {
      for (std::size_t i = 0; i < count; ++i) elements[c * count + i] = some[i * columns + c];
    }
    const auto right = attention::PackedRows::of_columns(some, static_cast<int>(columns));
    std::vector<float> dots(columns * as_size(right.stride()));
    right.multiply(elements, dots);
    using Strided = Eigen::Map<const Eigen::MatrixXf, 0, Eigen::OuterStride<>>;  // symmetric
    out += Strided(dots.data(), out.rows(), out.cols(), Eigen::OuterStride<>(right.stride())).cast<double>();
  }
  return out;
}

/// Squared lengths of the rows after multiplication by a matrix [k][k].
void squared_lengths(const CountedVector<float>& rows, const std::vector<float>& matrix, int k, std::span<float> out) {
  const attention::PackedRows by(matrix, k);
  const auto columns = as_size(k);
  std::vector<float> products(kRowsTogether * as_size(by.stride()));
  for (std::size_t first = 0; first < out.size(); first += kRowsTogether) {
    const std::size_t count = std::min(as_size(kRowsTogether), out.size() - first);
    by.multiply(std::span(rows).subspan(first * columns, count * columns), products);
    for (std::size_t i = 0; i < count; ++i) {
      const auto row = products.begin() + static_cast<std::ptrdiff_t>(i) * by.stride();
      out[first + i] = std::inner_product(row, row + k, row, 0.0F);
    }
  }
}

}  // namespace

Scores leverage(const LayerView& view, const AlwaysKept& always_kept, const Sketch& sketch) {
  Scores out(view.shape.kv_heads, view.tokens());
  const int first = always_kept.sinks;
  const int end = view.tokens() - always_kept.recent;
  const auto k = as_size(sketch.dimensions);
  const auto back = angles_back(view);
  for (int head = 0; head < out.heads() && first < end; ++head) {
    auto rows = sketched(view, head, sketch, first, end, back);
    centre(rows, k);
    Eigen::MatrixXd products = gram(rows, k);
    products.diagonal().array() += kRidge;
    const RowMajor<float> root = Ridged(products, kRidge).inverse_root().cast<float>();
    squared_lengths(rows, {root.data(), root.data() + root.size()}, sketch.dimensions,
                    out.head(head).subspan(as_size(first), as_size(end - first)));
  }
  return out;
}

std::size_t leverage_bytes(const LayerPrompt& prompt, const Sketch& sketch) {
  return as_size(prompt.tokens) * as_size(prompt.kv_heads + prompt.head_dim + sketch.dimensions) * sizeof(float);
}

}  // namespace winnow::policy
