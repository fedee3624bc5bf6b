// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "network/network.h"
#include "support/output_projection.h"
#include "winnow/model.h"

namespace winnow::test {

inline std::size_t z(int i) { return static_cast<std::size_t>(i); }

/// [layer][KV head][token]
using TextbookScores = std::vector<std::vector<std::vector<double>>>;

/// Tokens of one replay, as in the paper's code: the request, the end of the chunk before, a line break, the chunk.
inline std::vector<Token> repetition(const Model& model, const std::vector<Token>& text, int first, int end) {
  auto out = model.vocab().tokenize(first == 0 ? "\n\nRepeat the previous context exactly."
                                               : "\n\nRepeat the part of the previous context exactly, starting with ");
  const auto append = [&out](const auto& from, const auto& to) { out.insert(out.end(), from, to); };
  if (first > 0) append(text.begin() + first - 8, text.begin() + first);
  const auto reply = model.vocab().tokenize("\n");
  append(reply.begin(), reply.end());
  append(text.begin() + first, text.begin() + end);
  return out;
}

/// Scores of KVzip+, with attention in double precision: each row's attention divided by the length of its layer input,
/// times the length of the value after the query head's output projection.
inline TextbookScores plus_reference(const std::string& path, const Model& model, const std::vector<Token>& text,
                                     int chunk) {
  const int n = static_cast<int>(text.size());
  Network network(path, 1, 1, 2 * n + 200);
  const auto& h = network.hparams();
  const int heads = h.layer(0).n_head;
  TextbookScores by_head(z(h.n_layer), std::vector<std::vector<double>>(z(heads), std::vector<double>(z(n))));
  std::vector<double> length(z(2 * n + 200));
  network.attention().set_input_observer([&](int, const DenseAttention::Row& row, std::span<const float> input) {
    length[z(row.position)] = std::sqrt(std::inner_product(input.begin(), input.end(), input.begin(), 0.0));
  });
  for (int first = 0; first < n; first += chunk) {
    const int end = std::min(n, first + chunk);
    auto tokens = text;
    const auto more = repetition(model, text, first, end);
    tokens.insert(tokens.end(), more.begin(), more.end());
    std::vector<DenseAttention::Row> rows;
    for (int i = 0; i < static_cast<int>(tokens.size()); ++i) rows.push_back({0, i});
    network.attention().set_observer(
        [&](int layer, const DenseAttention::Row& row, int head, std::span<const double> weights) {
          auto& score = by_head[z(layer)][z(head)];
          for (int j = first; row.position >= n && j < end; ++j)
            score[z(j)] = std::max(score[z(j)], weights[z(j)] / length[z(row.position)]);
        });
    network.step(tokens, rows);
  }
  TextbookScores out(z(h.n_layer),
                     std::vector<std::vector<double>>(z(h.layer(0).n_head_kv), std::vector<double>(z(n))));
  for (int layer = 0; layer < h.n_layer; ++layer) {
    const auto w = output_projection(path, layer);
    const int group = h.layer(layer).group();
    const int dim = h.layer(layer).head_dim;
    for (int head = 0; head < heads; ++head) {
      for (int j = 0; j < n; ++j) {
        const auto value = network.attention().value(layer, j, head / group);
        double squares = 0;
        for (int o = 0; o < h.n_embd; ++o) {
          double made = 0;
          for (int c = 0; c < dim; ++c) made += w[z((o * heads + head) * dim + c)] * value[z(c)];
          squares += made * made;
        }
        double& to = out[z(layer)][z(head / group)][z(j)];
        to = std::max(to, by_head[z(layer)][z(head)][z(j)] * std::sqrt(squares));
      }
    }
  }
  return out;
}

}  // namespace winnow::test
