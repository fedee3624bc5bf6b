// SPDX-License-Identifier: Apache-2.0
// Observers of values, of the output projection and of tiles, compared with a network with textbook attention.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "network/network.h"
#include "support/cache_options.h"
#include "support/output_projection.h"
#include "support/temp.h"
#include "support/tiny_gguf.h"
#include "winnow/session.h"

namespace winnow::test {
namespace {

std::size_t z(int i) { return static_cast<std::size_t>(i); }

constexpr int kTokens = 150;
constexpr int kLayers = 3;
constexpr int kHeads = 6;
constexpr int kKvHeads = 2;
constexpr int kGroup = kHeads / kKvHeads;
constexpr int kDim = 64;

/// Queries, keys, values and attention of one layer.
struct Seen {
  std::vector<std::vector<float>> queries;                  ///< [token][H_q d]
  std::vector<std::vector<std::vector<float>>> keys;        ///< [KV head][token][d]
  std::vector<std::vector<std::vector<float>>> values;      ///< the same
  std::vector<std::vector<std::vector<double>>> attention;  ///< [query head][query][key]
  std::vector<std::vector<double>> absolute;                ///< [query head][token] sums of |W_o^(h) v|
};

double length(std::span<const float> x) {
  double square = 0;
  for (const float v : x) square += static_cast<double>(v) * v;
  return std::sqrt(square);
}

class UnseenTest : public testing::Test {
 protected:
  UnseenTest() {
    TinyModel tiny;
    tiny.n_layer = kLayers;
    tiny.n_head = kHeads;
    tiny.n_head_kv = kKvHeads;
    write_tiny_gguf(tiny, path_);
    model_ = Model::load(path_);
    text_ = random_tokens(kTokens, model_->info().n_vocab, 1);
  }

  std::vector<Seen> seen() const {
    Network network(path_, 1, 1, kTokens);
    std::vector<Seen> out(kLayers);
    for (auto& layer : out) {
      layer.queries.resize(kTokens);
      layer.keys.assign(kKvHeads, std::vector<std::vector<float>>(kTokens));
      layer.values = layer.keys;
      layer.attention.resize(kHeads);
    }
    network.attention().set_reader([&](int layer, int kv_head, const DenseAttention::Reading& reading) {
      auto& of = out[z(layer)];
      for (int j = 0; j < kTokens; ++j) of.keys[z(kv_head)][z(j)].assign(reading.key(j).begin(), reading.key(j).end());
      of.queries.emplace_back(reading.queries.begin(), reading.queries.end());
    });
    network.attention().set_observer(
        [&](int layer, const DenseAttention::Row&, int head, std::span<const double> weights) {
          out[z(layer)].attention[z(head)].emplace_back(weights.begin(), weights.end());
        });
    std::vector<DenseAttention::Row> rows;
    for (int i = 0; i < kTokens; ++i) rows.push_back({0, i});
    network.step(text_, rows);
    for (int layer = 0; layer < kLayers; ++layer) complete(network, layer, out[z(layer)]);
    return out;
  }

  /// Kept entries, [layer][KV head].
  std::vector<std::vector<std::vector<std::int32_t>>> kept(const std::string& spec, int budget, int chunk) const {
    const auto options = options_of(spec, std::to_string(budget), "f32");
    Session session(model_, {2, Precision::f32, chunk});
    return session.prefill(text_, std::span(&options, 1)).caches.front().kept();
  }

  TempFolder folder_;
  std::string path_ = folder_ / "tiny.gguf";
  std::shared_ptr<const Model> model_;
  std::vector<Token> text_;

 private:
  void complete(Network& network, int layer, Seen& seen) const {
    // The reader is called once for each query head; the first call of each row is enough.
    std::vector<std::vector<float>> queries;
    for (std::size_t i = kTokens; i < seen.queries.size(); i += kHeads) queries.push_back(seen.queries[i]);
    seen.queries = queries;
    for (int head = 0; head < kKvHeads; ++head) {
      for (int j = 0; j < kTokens; ++j) {
        const auto value = network.attention().value(layer, j, head);
        seen.values[z(head)][z(j)].assign(value.begin(), value.end());
      }
    }
    const auto w = output_projection(path_, layer);
    const int outputs = network.hparams().n_embd;
    seen.absolute.assign(kHeads, std::vector<double>(kTokens));
    for (int h = 0; h < kHeads; ++h) {
      for (int j = 0; j < kTokens; ++j) {
        for (int o = 0; o < outputs; ++o) {
          double made = 0;
          for (int c = 0; c < kDim; ++c)
            made += w[z((o * kHeads + h) * kDim + c)] * seen.values[z(h / kGroup)][z(j)][z(c)];
          seen.absolute[z(h)][z(j)] += std::abs(made);
        }
      }
    }
  }
};

/// Expects that no evicted entry of the tokens [first, end) has a higher score than a kept one, up to f32 rounding.
void expect_best(const std::vector<std::int32_t>& kept, const std::vector<double>& score, int first, int end) {
  double worst = 1e300;
  double best = -1e300;
  int count = 0;
  for (int j = first; j < end; ++j) {
    const bool stays = std::binary_search(kept.begin(), kept.end(), j);
    worst = stays ? std::min(worst, score[z(j)]) : worst;
    best = stays ? best : std::max(best, score[z(j)]);
    count += stays ? 1 : 0;
  }
  EXPECT_GT(count, 0);
  EXPECT_GE(worst, best - 1e-4 * std::abs(best));
}

TEST_F(UnseenTest, critical_weighs_attention_by_what_values_add_to_the_output) {
  constexpr int kWindow = 8;
  const auto all = seen();
  for (const int chunk : {150, 64}) {
    const auto sets = kept("critical(snapkv:window=8,kernel=1):share=0,epsilon=0", 40, chunk);
    for (int layer = 0; layer < kLayers; ++layer) {
      for (int head = 0; head < kKvHeads; ++head) {
        std::vector<double> score(kTokens);
        for (int j = 0; j < kTokens - kWindow; ++j) {
          double sum = 0;
          double lengths = 0;
          for (int h = head * kGroup; h < (head + 1) * kGroup; ++h) {
            for (int i = kTokens - kWindow; i < kTokens; ++i) sum += all[z(layer)].attention[z(h)][z(i)][z(j)];
            lengths += all[z(layer)].absolute[z(h)][z(j)];
          }
          score[z(j)] = sum * lengths;
        }
        SCOPED_TRACE(testing::Message() << "layer " << layer << ", head " << head << ", chunks of " << chunk);
        EXPECT_EQ(sets[z(layer)][z(head)].size(), 40U);
        expect_best(sets[z(layer)][z(head)], score, 0, kTokens - kWindow);
      }
    }
  }
}

/// Tiles of 40 tokens from token 8 on, so chunks of 32 and 64 tokens cut them.
TEST_F(UnseenTest, compactor_sees_what_the_tokens_of_a_tile_attend_to) {
  constexpr int kTile = 40;
  constexpr int kFirst = 8;
  constexpr int kEnd = kTokens - 4;
  const auto all = seen();
  for (const int chunk : {150, 64, 32}) {
    const auto sets = kept("compactor:tile=40,blend=0,floor=1", 50, chunk);
    for (int layer = 0; layer < kLayers; ++layer) {
      const Seen& of = all[z(layer)];
      for (int head = 0; head < kKvHeads; ++head) {
        std::vector<double> given(kTokens);
        for (int first = kFirst; first < kEnd; first += kTile) {
          const int end = std::min(kEnd, first + kTile);
          for (int h = head * kGroup; h < (head + 1) * kGroup; ++h) {
            for (int i = first; i < end; ++i) {
              std::vector<double> logits;
              for (int j = first; j < end; ++j) {
                double logit = 0;
                for (int c = 0; c < kDim; ++c)
                  logit += static_cast<double>(of.queries[z(i)][z(h * kDim + c)]) * of.keys[z(head)][z(j)][z(c)];
                logits.push_back(logit);
              }
              const double most = *std::max_element(logits.begin(), logits.end());
              double sum = 0;
              for (double& x : logits) sum += x = std::exp(x - most);
              for (int j = first; j < end; ++j)
                given[z(j)] += logits[z(j - first)] / sum * length(of.values[z(head)][z(j)]);
            }
          }
        }
        std::vector<double> score(kTokens);
        for (int j = kFirst; j < kEnd; ++j) {
          const int from = std::max(kFirst, j - 1);
          const int to = std::min(kEnd, j + 2);
          for (int k = from; k < to; ++k) score[z(j)] += given[z(k)] / (to - from);
        }
        SCOPED_TRACE(testing::Message() << "layer " << layer << ", head " << head << ", chunks of " << chunk);
        EXPECT_EQ(sets[z(layer)][z(head)].size(), 50U);
        expect_best(sets[z(layer)][z(head)], score, kFirst, kEnd);
      }
    }
  }
}

}  // namespace
}  // namespace winnow::test
