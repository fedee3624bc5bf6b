// SPDX-License-Identifier: Apache-2.0
#include "documents/select.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/as_size.h"

namespace winnow::documents {

namespace {

using Vector = std::vector<double>;

double dot(std::span<const double> a, std::span<const double> b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

double cosine(const Vector& a, const Vector& b) {
  const double lengths = std::sqrt(dot(a, a) * dot(b, b));
  return lengths > 0 ? dot(a, b) / lengths : 0;
}

/// Heads [n][d], rotated by a document's offset; each repeated `times` times side by side.
Vector moved(std::span<const float> heads, const model::LayerSpec& spec, int offset, int times) {
  const auto d = as_size(spec.head_dim);
  Vector out;
  for (std::size_t at = 0; at < heads.size(); at += d) {
    std::vector<float> head(heads.begin() + static_cast<std::ptrdiff_t>(at),
                            heads.begin() + static_cast<std::ptrdiff_t>(at + d));
    spec.rope.shift(head.data(), offset);
    for (int i = 0; i < times; ++i) out.insert(out.end(), head.begin(), head.end());
  }
  return out;
}

/// One document in one layer, from the question's view.
struct View {
  Vector query;                 ///< the question's mean query, personalised for this document
  std::vector<Vector> blocks;   ///< mean keys of its middle blocks, repeated over the group
  std::vector<double> product;  ///< inner product of the query with each block
};

class Layer {
 public:
  Layer(const Joint& joint, int layer, const Vector& question, Personalize personalize) : joint_(joint), layer_(layer) {
    const auto width = as_size(spec().n_head_kv) * as_size(spec().head_dim);
    for (int i = 0; i < joint.count(); ++i) {
      auto& view = views_.emplace_back();
      const auto& keys = facts(i).block_keys;
      for (std::size_t at = 0; at < keys.size(); at += width)
        view.blocks.push_back(moved(std::span(keys).subspan(at, width), spec(), joint.offset(i), spec().group()));
    }
    give_queries(question, personalize);
    for (auto& view : views_) {
      for (const auto& block : view.blocks) view.product.push_back(dot(view.query, block));
    }
  }

  const View& view(int i) const { return views_[i]; }

  /// Share of a document's middle blocks that are more important than its edges.
  double share(int i) const {
    const auto& v = view(i);
    if (v.blocks.size() < 2) return 0;
    const auto& all = facts(i).representatives;
    const auto important = std::min_element(all.begin(), all.end(), matters_more);
    const auto unimportant = std::min_element(all.begin(), all.end(), [](const auto& a, const auto& b) {
      return a.attention != b.attention ? a.attention < b.attention : a.token > b.token;
    });
    const double most = v.product[important - all.begin()];
    const double least = v.product[unimportant - all.begin()];
    const double anchor = dot(v.query, moved(facts(i).edge_key, spec(), joint_.offset(i), spec().group()));
    if (most <= least || anchor <= least || anchor > most) return 0;
    return (most - anchor) / (most - least);
  }

 private:
  const model::LayerSpec& spec() const { return joint_.hparams().layer(layer_); }
  const LayerFacts& facts(int i) const { return joint_.document(i).head().layers[layer_]; }

  void give_queries(const Vector& question, Personalize personalize) {
    const int n = joint_.count();
    for (auto& view : views_) view.query = question;
    if (n == 1 || personalize == Personalize::off) return;
    for (int j = 0; j < n; ++j) {
      const Vector local = moved(facts(j).local_query, spec(), joint_.offset(j), 1);
      const double weight = std::abs(cosine(question, local)) / (n - 1);
      for (int i = 0; i < n; ++i) {
        for (std::size_t c = 0; i != j && c < local.size(); ++c) views_[i].query[c] += weight * local[c];
      }
    }
  }

  const Joint& joint_;
  int layer_;
  std::vector<View> views_;
};

/// A middle block that a document offers.
struct Offer {
  int document;
  int block;
  double score;
};

/// Orders offers from the best; ties go to the later one.
bool better(const Offer& a, const Offer& b) {
  if (a.score != b.score) return a.score > b.score;
  return a.document != b.document ? a.document > b.document : a.block > b.block;
}

std::vector<Offer> best(std::vector<Offer> offers, std::size_t count) {
  std::sort(offers.begin(), offers.end(), better);
  offers.resize(std::min(count, offers.size()));
  return offers;
}

/// Standardises the scores: mean 0, standard deviation 1. All are 0 if they are equal.
void standardise(std::vector<Offer>& offers) {
  if (offers.empty()) return;
  const auto n = static_cast<double>(offers.size());
  const double first = offers.front().score;  // subtracted, so that equal scores are exactly 0
  double mean = 0;
  for (const Offer& offer : offers) mean += (offer.score - first) / n;
  double variance = 0;
  for (const Offer& offer : offers) variance += std::pow(offer.score - first - mean, 2) / n;
  for (Offer& offer : offers) offer.score = variance > 0 ? (offer.score - first - mean) / std::sqrt(variance) : 0;
}

/// The best `count` middle blocks of a document by inner product, with scores that are comparable across documents.
std::vector<Offer> offers_of(int document, const View& view, std::size_t count, BlockScore score) {
  std::vector<Offer> all;
  for (std::size_t b = 0; b < view.product.size(); ++b) all.push_back({document, static_cast<int>(b), view.product[b]});
  auto out = best(std::move(all), count);
  if (score == BlockScore::zscore) {
    standardise(out);
  } else {
    for (Offer& offer : out) offer.score = cosine(view.query, view.blocks[offer.block]);
  }
  return out;
}

/// Middle blocks that one layer keeps, [document].
std::vector<std::vector<int>> merge(const Layer& layer, std::span<const int> counts, BlockScore score) {
  std::vector<Offer> all;
  for (int i = 0; i < static_cast<int>(counts.size()); ++i) {
    const auto offers = offers_of(i, layer.view(i), as_size(counts[i]), score);
    all.insert(all.end(), offers.begin(), offers.end());
  }
  const std::size_t documents = counts.size();
  const std::size_t keep = (all.size() + documents - 1) / documents;
  std::vector<std::vector<int>> out(documents);
  for (const auto& offer : best(std::move(all), keep)) out[offer.document].push_back(offer.block);
  for (auto& blocks : out) std::sort(blocks.begin(), blocks.end());
  return out;
}

}  // namespace

int usual_deciding_layers(int layers) { return std::max(1, (14 * layers + 50) / 100); }

MiddleBlocks select_blocks(const Joint& joint, std::span<const std::vector<double>> question,
                           const SelectOptions& options) {
  std::vector<Layer> layers;
  for (std::size_t layer = 0; layer < question.size(); ++layer)
    layers.emplace_back(joint, static_cast<int>(layer), question[layer], options.personalize);
  const std::size_t deciding = std::min(layers.size(), as_size(options.deciding_layers));
  std::vector<int> counts;
  for (int i = 0; i < joint.count(); ++i) {
    double share = 0;
    for (std::size_t layer = layers.size() - deciding; layer < layers.size(); ++layer) share += layers[layer].share(i);
    counts.push_back(static_cast<int>(std::ceil(share / static_cast<double>(deciding) * joint.layout(i).middle())));
  }
  MiddleBlocks out;
  for (const auto& layer : layers) out.push_back(merge(layer, counts, options.score));
  return out;
}

bool matters_more(const Representative& a, const Representative& b) {
  if (a.exponent != b.exponent) return a.exponent < b.exponent;
  return a.attention != b.attention ? a.attention > b.attention : a.token > b.token;
}

std::vector<std::int32_t> outliers(std::span<const Representative> representatives, double factor) {
  const auto n = static_cast<double>(representatives.size());
  double mean = 0;
  double square = 0;
  for (const auto& r : representatives) mean += static_cast<double>(r.exponent) / n;
  for (const auto& r : representatives)
    square += (static_cast<double>(r.exponent) - mean) * (static_cast<double>(r.exponent) - mean);
  std::vector<std::int32_t> out;
  for (const auto& r : representatives) {
    if (static_cast<double>(r.exponent) < mean - factor * std::sqrt(square / n)) out.push_back(r.token);
  }
  return out;
}

}  // namespace winnow::documents
