// SPDX-License-Identifier: Apache-2.0
#include "multi/facts.h"

#include <algorithm>
#include <cmath>

#include "attention/products.h"
#include "multi/select.h"

namespace winnow::multi {

namespace {

/// Rows whose products with the representatives are computed together.
constexpr int kRowsTogether = 256;

std::size_t z(int i) { return static_cast<std::size_t>(i); }

/// Mean of rows [begin, end) of each KV head's keys, [H_kv][d], added to `out` with the weight of one over `count`.
void add_mean_key(const cache::LayerScratch& scratch, int begin, int end, int count, std::span<float> out) {
  const auto d = z(scratch.head_dim());
  std::vector<float> row(d);
  std::vector<double> sum(d);
  for (int head = 0; head < scratch.kv_heads(); ++head) {
    const auto keys = scratch.keys(head);
    std::fill(sum.begin(), sum.end(), 0.0);
    for (int i = begin; i < end; ++i) {
      cache::decode_row(keys.type, keys.row(i), row);
      for (std::size_t c = 0; c < d; ++c) sum[c] += static_cast<double>(row[c]);
    }
    for (std::size_t c = 0; c < d; ++c) out[z(head) * d + c] += static_cast<float>(sum[c] / count);
  }
}

void add_keys(const cache::LayerScratch& scratch, const BlockLayout& blocks, LayerFacts& facts) {
  const auto width = z(scratch.kv_heads()) * z(scratch.head_dim());
  const int local = blocks.begin(blocks.first_local());
  const int edges = blocks.end(0) + (blocks.local() > 0 ? blocks.tokens - local : 0);
  facts.edge_key.resize(width);
  add_mean_key(scratch, 0, blocks.end(0), edges, facts.edge_key);
  if (blocks.local() > 0) add_mean_key(scratch, local, blocks.tokens, edges, facts.edge_key);
  facts.block_keys.resize(z(blocks.middle()) * width);
  for (int b = 0; b < blocks.middle(); ++b)
    add_mean_key(scratch, blocks.begin(b + 1), blocks.end(b + 1), kBlock,
                 std::span(facts.block_keys).subspan(z(b) * width, width));
}

/// Mean query over the local blocks; of a document without any, over its only block.
std::vector<float> local_query(const SeenLayer& seen, const BlockLayout& blocks) {
  const std::size_t width = z(seen.shape.query_heads) * z(seen.shape.head_dim);
  const int first = blocks.local() > 0 ? blocks.begin(blocks.first_local()) : 0;
  std::vector<double> sum(width);
  for (int i = first; i < blocks.tokens; ++i) {
    for (std::size_t c = 0; c < width; ++c) sum[c] += static_cast<double>(seen.queries[z(i) * width + c]);
  }
  std::vector<float> out;
  for (const double x : sum) out.push_back(static_cast<float>(x / (blocks.tokens - first)));
  return out;
}

/// [H_q][N] attention that each token got from those behind it.
std::vector<double> from_behind(const SeenLayer& seen) {
  std::vector<double> out;
  for (int head = 0; head < seen.shape.query_heads; ++head) {
    for (int j = 0; j < seen.tokens(); ++j) {
      const auto own = static_cast<double>(seen.diagonal->head(head)[z(j)]);
      out.push_back(std::max(0.0, static_cast<double>(seen.all->head(head)[z(j)]) - own));
    }
  }
  return out;
}

std::vector<float> group_mean(const SeenLayer& seen, std::span<const double> behind) {
  const int n = seen.tokens();
  std::vector<double> out(z(seen.shape.kv_heads) * z(n));
  for (int head = 0; head < seen.shape.query_heads; ++head) {
    for (int j = 0; j < n; ++j)
      out[z(head / seen.shape.group()) * z(n) + z(j)] += behind[z(head) * z(n) + z(j)] / seen.shape.group();
  }
  return {out.begin(), out.end()};
}

/// The token of each middle block with the largest mean, ties to the later.
std::vector<Representative> representatives(const SeenLayer& seen, std::span<const double> behind,
                                            const BlockLayout& blocks) {
  const int n = seen.tokens();
  std::vector<Representative> out;
  for (int b = 1; b <= blocks.middle(); ++b) {
    Representative best{-1, 0, 0};
    for (int j = blocks.begin(b); j < blocks.end(b); ++j) {
      double sum = 0;
      for (int head = 0; head < seen.shape.query_heads; ++head) sum += behind[z(head) * z(n) + z(j)];
      const auto mean = static_cast<float>(sum / seen.shape.query_heads / (n - 1 - j));
      if (best.token < 0 || mean >= best.attention) best = {j, 0, mean};
    }
    out.push_back(best);
  }
  return out;
}

/// Adds one query head's attention to the representatives to `curves` [m][N].
void add_curves(const SeenLayer& seen, int head, const attention::PackedRows& keys, std::span<const Representative> of,
                std::span<double> curves) {
  const int n = seen.tokens();
  const auto d = z(seen.shape.head_dim);
  std::vector<float> left;
  std::vector<float> products(z(kRowsTogether) * z(keys.stride()));
  for (int first = of.front().token + 1; first < n; first += kRowsTogether) {
    const int count = std::min(kRowsTogether, n - first);
    left.clear();
    for (int i = first; i < first + count; ++i) {
      const auto query = seen.queries.subspan((z(i) * z(seen.shape.query_heads) + z(head)) * d, d);
      left.insert(left.end(), query.begin(), query.end());
    }
    keys.multiply(left, products);
    for (int i = first; i < first + count; ++i) {
      const float logsum = seen.logsums[z(i) * z(seen.shape.query_heads) + z(head)];
      const float* const product = products.data() + z(i - first) * z(keys.stride());
      for (std::size_t r = 0; r < of.size() && of[r].token < i; ++r)
        curves[r * z(n) + z(i)] +=
            static_cast<double>(std::exp(seen.shape.scale * product[r] - logsum)) / seen.shape.query_heads;
    }
  }
}

void add_exponents(const SeenLayer& seen, std::span<Representative> of) {
  if (of.empty()) return;
  const int n = seen.tokens();
  const auto d = z(seen.shape.head_dim);
  std::vector<double> curves(of.size() * z(n));
  for (int kv = 0; kv < seen.shape.kv_heads; ++kv) {
    const auto stored = seen.scratch->keys(kv);
    std::vector<float> rows(of.size() * d);
    for (std::size_t r = 0; r < of.size(); ++r)
      cache::decode_row(stored.type, stored.row(of[r].token), std::span(rows).subspan(r * d, d));
    const attention::PackedRows keys(rows, seen.shape.head_dim);
    for (int g = 0; g < seen.shape.group(); ++g) add_curves(seen, kv * seen.shape.group() + g, keys, of, curves);
  }
  for (std::size_t r = 0; r < of.size(); ++r) {
    const auto curve = std::span(curves).subspan(r * z(n), z(n)).subspan(z(of[r].token + 1));
    of[r].exponent = static_cast<float>(power_law_exponent(curve));
  }
}

}  // namespace

double power_law_exponent(std::span<const double> y) {
  constexpr double kFloor = 1e-8;
  const auto n = static_cast<double>(y.size());
  double x_mean = 0;
  double y_mean = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    x_mean += std::log(static_cast<double>(i + 1)) / n;
    y_mean += std::log(std::max(y[i], kFloor)) / n;
  }
  double xy = 0;
  double xx = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double x = std::log(static_cast<double>(i + 1)) - x_mean;
    xy += x * (std::log(std::max(y[i], kFloor)) - y_mean);
    xx += x * x;
  }
  return xx > 0 ? std::max(0.0, -xy / xx) : 0;
}

LayerFacts facts_of(const SeenLayer& seen) {
  const BlockLayout blocks{seen.tokens()};
  LayerFacts facts;
  facts.local_query = local_query(seen, blocks);
  add_keys(*seen.scratch, blocks, facts);
  const auto behind = from_behind(seen);
  facts.received = group_mean(seen, behind);
  facts.representatives = representatives(seen, behind, blocks);
  add_exponents(seen, facts.representatives);
  facts.outliers = outliers(facts.representatives, kOutlierFactor);
  return facts;
}

}  // namespace winnow::multi
