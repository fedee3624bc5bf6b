// SPDX-License-Identifier: Apache-2.0
#include "documents/facts.h"

#include <algorithm>
#include <cmath>

#include "attention/products.h"
#include "base/as_size.h"
#include "documents/select.h"

namespace winnow::documents {

namespace {

/// Rows whose products with the representatives are computed together.
constexpr int kRowsTogether = 256;

/// Adds the sum of rows [begin, end) of each KV head's keys, divided by `count`, to `out` [H_kv][d].
void add_mean_key(const cache::LayerScratch& scratch, int begin, int end, int count, std::span<float> out) {
  const auto d = as_size(scratch.head_dim());
  std::vector<float> row(d);
  std::vector<double> sum(d);
  for (int head = 0; head < scratch.kv_heads(); ++head) {
    const auto keys = scratch.keys(head);
    std::fill(sum.begin(), sum.end(), 0.0);
    for (int i = begin; i < end; ++i) {
      cache::decode_row(keys.type, keys.row(i), row);
      for (std::size_t c = 0; c < d; ++c) sum[c] += static_cast<double>(row[c]);
    }
    for (std::size_t c = 0; c < d; ++c) out[as_size(head) * d + c] += static_cast<float>(sum[c] / count);
  }
}

void add_keys(const cache::LayerScratch& scratch, const BlockLayout& blocks, LayerFacts& facts) {
  const auto width = as_size(scratch.kv_heads()) * as_size(scratch.head_dim());
  const int local = blocks.begin(blocks.first_local());
  const int edges = blocks.end(0) + (blocks.local() > 0 ? blocks.tokens - local : 0);
  facts.edge_key.resize(width);
  add_mean_key(scratch, 0, blocks.end(0), edges, facts.edge_key);
  if (blocks.local() > 0) add_mean_key(scratch, local, blocks.tokens, edges, facts.edge_key);
  facts.block_keys.resize(as_size(blocks.middle()) * width);
  for (int b = 0; b < blocks.middle(); ++b)
    add_mean_key(scratch, blocks.begin(b + 1), blocks.end(b + 1), kBlock,
                 std::span(facts.block_keys).subspan(as_size(b) * width, width));
}

/// Mean query over the local blocks, or over the only block if there are none.
std::vector<float> local_query(const LayerAttention& layer, const BlockLayout& blocks) {
  const std::size_t width = as_size(layer.shape.query_heads) * as_size(layer.shape.head_dim);
  const int first = blocks.local() > 0 ? blocks.begin(blocks.first_local()) : 0;
  std::vector<double> sum(width);
  for (int i = first; i < blocks.tokens; ++i) {
    for (std::size_t c = 0; c < width; ++c) sum[c] += static_cast<double>(layer.queries[as_size(i) * width + c]);
  }
  std::vector<float> out;
  for (const double x : sum) out.push_back(static_cast<float>(x / (blocks.tokens - first)));
  return out;
}

/// [H_q][N]: attention that each token got from later ones.
std::vector<double> from_later(const LayerAttention& layer) {
  std::vector<double> out;
  for (int head = 0; head < layer.shape.query_heads; ++head) {
    for (int j = 0; j < layer.tokens(); ++j) {
      const auto own = static_cast<double>(layer.diagonal->head(head)[j]);
      out.push_back(std::max(0.0, static_cast<double>(layer.all->head(head)[j]) - own));
    }
  }
  return out;
}

std::vector<float> group_mean(const LayerAttention& layer, std::span<const double> later) {
  const int n = layer.tokens();
  std::vector<double> out(as_size(layer.shape.kv_heads) * as_size(n));
  for (int head = 0; head < layer.shape.query_heads; ++head) {
    for (int j = 0; j < n; ++j)
      out[as_size(head / layer.shape.group()) * as_size(n) + as_size(j)] +=
          later[as_size(head) * as_size(n) + as_size(j)] / layer.shape.group();
  }
  return {out.begin(), out.end()};
}

/// The token of each middle block with the largest mean attention; ties go to the later one.
std::vector<Representative> representatives(const LayerAttention& layer, std::span<const double> later,
                                            const BlockLayout& blocks) {
  const int n = layer.tokens();
  std::vector<Representative> out;
  for (int b = 1; b <= blocks.middle(); ++b) {
    Representative best{-1, 0, 0};
    for (int j = blocks.begin(b); j < blocks.end(b); ++j) {
      double sum = 0;
      for (int head = 0; head < layer.shape.query_heads; ++head) sum += later[as_size(head) * as_size(n) + as_size(j)];
      const auto mean = static_cast<float>(sum / layer.shape.query_heads / (n - 1 - j));
      if (best.token < 0 || mean >= best.attention) best = {j, 0, mean};
    }
    out.push_back(best);
  }
  return out;
}

/// Adds one query head's attention to the blocks' curves. `keys`: keys of the representatives.
void add_curves(const LayerAttention& layer, int head, const attention::PackedRows& keys,
                std::span<BlockAttention> blocks) {
  const int n = layer.tokens();
  const auto d = as_size(layer.shape.head_dim);
  std::vector<float> left;
  std::vector<float> dots(as_size(kRowsTogether) * as_size(keys.stride()));
  for (int first = blocks.front().representative.token + 1; first < n; first += kRowsTogether) {
    const int count = std::min(kRowsTogether, n - first);
    left.clear();
    for (int i = first; i < first + count; ++i) {
      const auto query = layer.queries.subspan((as_size(i) * as_size(layer.shape.query_heads) + as_size(head)) * d, d);
      left.insert(left.end(), query.begin(), query.end());
    }
    keys.multiply(left, dots);
    for (int i = first; i < first + count; ++i) {
      const float logsum = layer.logsums[as_size(i) * as_size(layer.shape.query_heads) + as_size(head)];
      const float* const product = dots.data() + as_size(i - first) * as_size(keys.stride());
      for (std::size_t b = 0; b < blocks.size() && blocks[b].representative.token < i; ++b)
        blocks[b].curve[as_size(i - blocks[b].representative.token - 1)] +=
            static_cast<double>(std::exp(layer.shape.logit(product[b]) - logsum)) / layer.shape.query_heads;
    }
  }
}

void fill_curves(const LayerAttention& layer, std::span<BlockAttention> blocks) {
  const auto d = as_size(layer.shape.head_dim);
  for (auto& block : blocks) block.curve.resize(as_size(layer.tokens() - 1 - block.representative.token));
  for (int kv = 0; kv < layer.shape.kv_heads; ++kv) {
    const auto stored = layer.scratch->keys(kv);
    std::vector<float> rows(blocks.size() * d);
    for (std::size_t b = 0; b < blocks.size(); ++b)
      cache::decode_row(stored.type, stored.row(blocks[b].representative.token), std::span(rows).subspan(b * d, d));
    const attention::PackedRows keys(rows, layer.shape.head_dim);
    for (int g = 0; g < layer.shape.group(); ++g) add_curves(layer, kv * layer.shape.group() + g, keys, blocks);
  }
}

/// `later`: result of from_later().
std::vector<BlockAttention> blocks_of(const LayerAttention& layer, std::span<const double> later) {
  std::vector<BlockAttention> out;
  for (const auto& representative : representatives(layer, later, {layer.tokens()}))
    out.push_back({representative, {}, {}});
  if (out.empty()) return out;
  fill_curves(layer, out);
  for (auto& block : out) {
    block.law = power_law_of(block.curve);
    block.representative.exponent = static_cast<float>(block.law.exponent);
  }
  return out;
}

}  // namespace

PowerLaw power_law_of(std::span<const double> y) {
  if (y.empty()) return {};
  const auto n = static_cast<double>(y.size());
  const double first = std::log(std::max(y[0], kLeastAttention));  // subtracted, so that equal numbers are exactly 0
  const auto log_y = [&](std::size_t i) { return std::log(std::max(y[i], kLeastAttention)) - first; };
  double x_mean = 0;
  double y_mean = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    x_mean += std::log(static_cast<double>(i + 1)) / n;
    y_mean += log_y(i) / n;
  }
  double xy = 0;
  double xx = 0;
  double yy = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double dx = std::log(static_cast<double>(i + 1)) - x_mean;
    const double dy = log_y(i) - y_mean;
    xy += dx * dy;
    xx += dx * dx;
    yy += dy * dy;
  }
  PowerLaw out;
  if (xx > 0) out.exponent = std::max(0.0, -xy / xx);
  out.log_scale = first + y_mean + out.exponent * x_mean;
  if (out.exponent > 0) out.explained = std::min(1.0, xy * xy / (xx * yy));
  return out;
}

std::vector<BlockAttention> attention_to_blocks(const LayerAttention& layer) {
  return blocks_of(layer, from_later(layer));
}

LayerFacts facts_of(const LayerAttention& layer) {
  const BlockLayout blocks{layer.tokens()};
  LayerFacts facts;
  facts.local_query = local_query(layer, blocks);
  add_keys(*layer.scratch, blocks, facts);
  const auto later = from_later(layer);
  facts.received = group_mean(layer, later);
  for (const auto& block : blocks_of(layer, later)) facts.representatives.push_back(block.representative);
  facts.outliers = outliers(facts.representatives, kOutlierFactor);
  return facts;
}

}  // namespace winnow::documents
