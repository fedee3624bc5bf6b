// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "attention/reference.h"
#include "network/attention_op.h"
#include "network/executor.h"

/// SamKV step by step as in docs/methods.md: double precision, plain loops. It uses winnow's network, but its own
/// attention.
namespace winnow::reference {

using Vector = std::vector<double>;

struct Entry {
  std::vector<float> key;  ///< [H_kv * d]
  std::vector<float> value;
};
/// Entries of one layer by position.
using Entries = std::map<int, Entry>;

/// Attention of rows that may store their keys and values among the entries. A row sees all entries up to its own
/// position, and always itself.
class Attention : public network::AttentionOp {
 public:
  explicit Attention(const model::Hparams& hparams) : h_(hparams) {}

  std::vector<int> positions;
  std::function<bool(int row)> stores;
  Entries* entries = nullptr;
  std::function<const Entry&(int row)> own;  ///< the row's own entry, if it is not stored
  std::function<void(int row, int head, int position, double weight)> watch;
  std::vector<Vector> queries;  ///< [row][H_q * d]

  void phase(int number, const Tensors& t, Worker worker) noexcept override {
    if (worker.index != 0 || number > 1) return;
    const auto& spec = h_.layer(t.layer);
    const std::size_t kv = static_cast<std::size_t>(spec.n_head_kv * spec.head_dim);
    const std::size_t all = static_cast<std::size_t>(spec.n_head * spec.head_dim);
    if (number == 0) {
      queries.clear();
      for (int row = 0; row < t.rows; ++row) {
        const auto r = static_cast<std::size_t>(row);
        queries.emplace_back(t.q + r * all, t.q + (r + 1) * all);
        if (stores(row))
          (*entries)[positions[r]] = {{t.k + r * kv, t.k + (r + 1) * kv}, {t.v + r * kv, t.v + (r + 1) * kv}};
      }
      return;
    }
    std::span<const float> sinks;
    if (!h_.sink_logits.empty()) sinks = h_.sink_logits[static_cast<std::size_t>(t.layer)];
    for (int row = 0; row < t.rows; ++row) {
      const auto seen = seen_by(row);
      for (int head = 0; head < spec.n_head; ++head)
        attend(spec, sinks, row, head, seen, t.out + static_cast<std::size_t>(row) * all);
    }
  }

 private:
  using Seen = std::vector<std::pair<int, const Entry*>>;

  Seen seen_by(int row) const {
    const int place = positions[row];
    Seen seen;
    for (const auto& [position, entry] : *entries) {
      if (position <= place) seen.emplace_back(position, &entry);
    }
    if (entries->count(place) == 0) seen.emplace_back(place, &own(row));
    return seen;
  }

  /// Dot product in four independent sums. REQUIRES: n is a multiple of four.
  static double product(const double* a, const float* b, std::size_t n) {
    double sums[4] = {};
    for (std::size_t i = 0; i < n; i += 4) {
      for (std::size_t j = 0; j < 4; ++j) sums[j] += a[i + j] * static_cast<double>(b[i + j]);
    }
    return sums[0] + sums[1] + sums[2] + sums[3];
  }

  void attend(const model::LayerSpec& spec, std::span<const float> sinks, int row, int head, const Seen& seen,
              float* out) {
    const std::size_t d = static_cast<std::size_t>(spec.head_dim);
    const std::size_t first = static_cast<std::size_t>(head / (spec.n_head / spec.n_head_kv)) * d;
    const double* const q = queries[row].data() + static_cast<std::size_t>(head) * d;
    Vector weight;
    const double sink = sinks.empty() ? -INFINITY : sinks[static_cast<std::size_t>(head)];
    double most = sink;
    for (const auto& [position, entry] : seen) {
      double s = product(q, entry->key.data() + first, d) * spec.attention_scale;
      if (spec.attention_cap > 0) s = spec.attention_cap * std::tanh(s / spec.attention_cap);
      weight.push_back(s);
      most = std::max(most, weight.back());
    }
    double sum = std::exp(sink - most);
    for (double& w : weight) sum += w = std::exp(w - most);
    Vector o(d);
    for (std::size_t j = 0; j < seen.size(); ++j) {
      weight[j] /= sum;
      if (watch) watch(row, head, seen[j].first, weight[j]);
      for (std::size_t i = 0; i < d; ++i) o[i] += weight[j] * static_cast<double>(seen[j].second->value[first + i]);
    }
    for (std::size_t i = 0; i < d; ++i) out[static_cast<std::size_t>(head) * d + i] = static_cast<float>(o[i]);
  }

  const model::Hparams& h_;
};

/// Facts that samkv stores about one layer of a document. Blocks are numbered from the document's beginning.
struct Layer {
  Entries entries;
  Vector local_query;                 ///< [H_q * d]
  Vector edge_key;                    ///< [H_kv * d]
  std::map<int, Vector> block_key;    ///< of middle blocks
  std::map<int, int> representative;  ///< token
  std::map<int, double> exponent;
  std::map<int, double> mean;    ///< attention that the representative receives
  std::vector<Vector> received;  ///< [H_kv][N]
};

struct Document {
  std::vector<std::int32_t> tokens;
  std::vector<Layer> layers;

  int n() const { return static_cast<int>(tokens.size()); }
  int blocks() const { return (n() + 63) / 64; }
  int end(int block) const { return std::min(n(), 64 * (block + 1)); }
  /// True for the last two blocks, except the first block.
  bool is_local(int block) const { return block > 0 && block >= blocks() - 2; }
  bool is_middle(int block) const { return block > 0 && !is_local(block); }
  int middle() const { return std::max(0, blocks() - 3); }
};

struct Options {
  bool personalize = true;
  bool select = true;
  bool recompute = true;
  bool zscore = false;
  bool fusion = true;
  int fresh = 1;
  bool anchor_block = false;
  double sigma = 3;
  int deciding = 0;  ///< 0: the paper's share
};

/// The paper's share of deciding layers (5 of 32, 4 of 32 and 5 of 36 together), rounded, at least one.
inline int paper_share(int layers) {
  return std::max(1, static_cast<int>(std::lround((5.0 + 4.0 + 5.0) / (32.0 + 32.0 + 36.0) * layers)));
}

struct Outcome {
  std::vector<std::vector<std::set<int>>> kept;  ///< [layer][document] blocks
  std::vector<std::set<int>> recomputed;         ///< [layer] joint positions
  std::vector<Entries> entries;                  ///< [layer] without the question
  std::vector<float> logits;
  std::vector<double> fusion_shares;  ///< all theta
};

inline double dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// Exponent alpha by least squares of log y = c - alpha log x.
inline double exponent(const Vector& y) {
  const double n = static_cast<double>(y.size());
  double sx = 0;
  double sy = 0;
  double sxy = 0;
  double sxx = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double x = std::log(static_cast<double>(i) + 1);
    const double v = std::log(std::max(y[i], 1e-8));
    sx += x;
    sy += v;
    sxy += x * v;
    sxx += x * x;
  }
  const double below = n * sxx - sx * sx;
  return below == 0 ? 0 : std::max(0.0, -(n * sxy - sx * sy) / below);
}

/// Blocks whose exponents are more than `sigma` population standard deviations below the mean.
inline std::set<int> outlier_blocks(const std::map<int, double>& exponents, double sigma) {
  double mean = 0;
  for (const auto& [block, alpha] : exponents) mean += alpha / static_cast<double>(exponents.size());
  double variance = 0;
  for (const auto& [block, alpha] : exponents)
    variance += (alpha - mean) * (alpha - mean) / static_cast<double>(exponents.size());
  std::set<int> out;
  for (const auto& [block, alpha] : exponents) {
    if (alpha < mean - sigma * std::sqrt(variance)) out.insert(block);
  }
  return out;
}

class SamKv {
 public:
  SamKv(const model::Weights& weights, MemoryAccount& account)
      : h_(weights.hparams()), executor_(weights, 1, account), account_(account) {}

  Document ingest(const std::vector<std::int32_t>& tokens) {
    Document doc{tokens, {}};
    Rows rows(*this, tokens, 0);
    for (int l = 0; l < h_.n_layer; ++l) doc.layers.push_back(ingest_layer(doc, rows, l));
    return doc;
  }

  Outcome ask(const std::vector<const Document*>& documents, const std::vector<std::int32_t>& question,
              const Options& options) {
    set(documents, options);
    Outcome r;
    choose(question, r);
    recompute(r);
    Rows rows(*this, question, offset_.back());
    for (int l = 0; l < h_.n_layer; ++l) {
      Entries all = r.entries[at(l)];
      rows.run(l, all, [](int) { return true; });
    }
    r.logits.resize(at(h_.n_vocab));
    executor_.logits(*rows.hidden, rows.count() - 1, 1, r.logits.data());
    return r;
  }

  /// Only chooses the blocks, for a question with a given mean query in each layer.
  Outcome choose(const std::vector<const Document*>& documents, const std::vector<Vector>& mean,
                 const Options& options) {
    set(documents, options);
    Outcome r;
    keep_edges(r);
    choose_middle(mean, r);
    return r;
  }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  /// Rows that pass through the layers.
  struct Rows {
    Rows(SamKv& o, const std::vector<std::int32_t>& tokens, int first) : owner(o), attention(o.h_) {
      for (int i = 0; i < static_cast<int>(tokens.size()); ++i) attention.positions.push_back(first + i);
      begin(tokens);
    }
    Rows(SamKv& o, const std::vector<std::int32_t>& tokens, const std::vector<int>& positions)
        : owner(o), attention(o.h_) {
      attention.positions = positions;
      begin(tokens);
    }
    void begin(const std::vector<std::int32_t>& tokens) {
      hidden = owner.executor_.states(std::max(1, static_cast<int>(tokens.size())), "reference");
      owner.executor_.embed(tokens, *hidden);
    }
    int count() const { return static_cast<int>(attention.positions.size()); }
    void run(int layer, Entries& entries, const std::function<bool(int)>& stores) {
      attention.entries = &entries;
      attention.stores = stores;
      const std::vector<std::int32_t> positions(attention.positions.begin(), attention.positions.end());
      owner.executor_.run_layer({}, layer, *hidden, 0, positions, attention);
    }

    SamKv& owner;
    Attention attention;
    std::optional<network::States> hidden;
  };

  Layer ingest_layer(const Document& doc, Rows& rows, int l) {
    const int n = doc.n();
    const auto& spec = h_.layer(l);
    const int group = spec.n_head / spec.n_head_kv;
    Layer out;
    std::vector<Vector> mean(at(n), Vector(at(n)));  // [key][query], mean over the heads
    out.received.assign(at(spec.n_head_kv), Vector(at(n)));
    rows.attention.watch = [&](int i, int head, int j, double weight) {
      mean[at(j)][at(i)] += weight / spec.n_head;
      if (i > j) out.received[at(head / group)][at(j)] += weight / group;
    };
    rows.run(l, out.entries, [](int) { return true; });
    int edges = 0;
    int locals = 0;
    out.edge_key.assign(out.entries[0].key.size(), 0);
    out.local_query.assign(at(spec.n_head * spec.head_dim), 0);
    for (int t = 0; t < n; ++t) {
      const int b = t / 64;
      const auto& key = out.entries[t].key;
      if (doc.is_middle(b)) {
        auto& block = out.block_key.try_emplace(b, key.size(), 0.0).first->second;
        for (std::size_t i = 0; i < key.size(); ++i) block[i] += static_cast<double>(key[i]) / 64;
        continue;
      }
      ++edges;
      for (std::size_t i = 0; i < key.size(); ++i) out.edge_key[i] += static_cast<double>(key[i]);
      if (!doc.is_local(b) && doc.blocks() > 1) continue;  // a document of one block uses this block's queries
      ++locals;
      for (std::size_t i = 0; i < out.local_query.size(); ++i) out.local_query[i] += rows.attention.queries[at(t)][i];
    }
    for (double& x : out.edge_key) x /= edges;
    for (double& x : out.local_query) x /= locals;
    for (const auto& [b, unused] : out.block_key) represent(doc, out, b, mean);
    return out;
  }

  static void represent(const Document& doc, Layer& layer, int block, const std::vector<Vector>& attention) {
    for (int j = 64 * block; j < 64 * block + 64; ++j) {
      Vector y;
      double sum = 0;
      for (int i = j + 1; i < doc.n(); ++i) {
        y.push_back(attention[at(j)][at(i)]);
        sum += y.back();
      }
      const double mean = sum / static_cast<double>(y.size());
      if (layer.representative.count(block) > 0 && mean < layer.mean[block]) continue;
      layer.representative[block] = j;
      layer.mean[block] = mean;
      layer.exponent[block] = exponent(y);
    }
  }

  /// Keys of a document's layer, rotated to the document's joint position.
  std::vector<float> moved(int l, std::span<const float> heads, int document) const {
    const auto& spec = h_.layer(l);
    std::vector<float> out;
    for (std::size_t i = 0; i < heads.size(); i += at(spec.head_dim)) {
      const auto head = rotated(heads.subspan(i, at(spec.head_dim)), spec.rope.frequency,
                                spec.rope.pairing == Rope::Pairing::adjacent, offset_[at(document)]);
      out.insert(out.end(), head.begin(), head.end());
    }
    return out;
  }
  Vector moved(int l, const Vector& heads, int document) const {
    const std::vector<float> narrow(heads.begin(), heads.end());
    const auto out = moved(l, std::span<const float>(narrow), document);
    return {out.begin(), out.end()};
  }
  /// Repeats each key head for the query heads that read it.
  Vector key_of(int l, const Vector& heads, int document) const {
    const auto& spec = h_.layer(l);
    const Vector one = moved(l, heads, document);
    Vector out;
    for (int head = 0; head < spec.n_head; ++head) {
      const auto first = one.begin() + (head / (spec.n_head / spec.n_head_kv)) * spec.head_dim;
      out.insert(out.end(), first, first + spec.head_dim);
    }
    return out;
  }

  Entry stored(int document, int l, int token) const {
    const auto& e = docs_[at(document)]->layers[at(l)].entries.at(token);
    return {moved(l, std::span<const float>(e.key), document), e.value};
  }

  int documents() const { return static_cast<int>(docs_.size()); }

  void set(const std::vector<const Document*>& documents, const Options& options) {
    docs_ = documents;
    offset_.assign(1, 0);
    for (const auto* d : docs_) offset_.push_back(offset_.back() + d->n());
    options_ = options;
  }

  void keep_edges(Outcome& r) const {
    r.kept.assign(at(h_.n_layer), std::vector<std::set<int>>(docs_.size()));
    for (auto& layer : r.kept) {
      for (int i = 0; i < documents(); ++i) {
        for (int b = 0; b < docs_[at(i)]->blocks(); ++b) {
          if (!docs_[at(i)]->is_middle(b)) layer[at(i)].insert(b);
        }
      }
    }
  }

  void choose(const std::vector<std::int32_t>& question, Outcome& r) {
    keep_edges(r);
    if (!options_.select) return;
    choose_middle(question_queries(question, r), r);
  }

  void choose_middle(const std::vector<Vector>& mean, Outcome& r) const {
    std::vector<std::vector<Vector>> query(at(h_.n_layer));  // [layer][document]
    for (int l = 0; l < h_.n_layer; ++l) query[at(l)] = personal(mean[at(l)], l);
    const int last = options_.deciding > 0 ? options_.deciding : paper_share(h_.n_layer);
    std::vector<int> offered;
    for (int i = 0; i < documents(); ++i) {
      double share = 0;
      for (int l = h_.n_layer - last; l < h_.n_layer; ++l) share += proportion(i, l, query[at(l)][at(i)]) / last;
      offered.push_back(static_cast<int>(std::ceil(share * docs_[at(i)]->middle())));
    }
    for (int l = 0; l < h_.n_layer; ++l) merge(l, offered, query[at(l)], r.kept[at(l)]);
  }

  std::vector<Vector> question_queries(const std::vector<std::int32_t>& question, const Outcome& r) {
    Rows rows(*this, question, offset_.back());
    std::vector<Vector> out;
    for (int l = 0; l < h_.n_layer; ++l) {
      Entries edges = entries_of(r.kept[at(l)], l);
      rows.run(l, edges, [](int) { return true; });
      Vector mean(at(h_.layer(l).n_head * h_.layer(l).head_dim));
      for (const auto& q : rows.attention.queries) {
        for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += q[i] / static_cast<double>(question.size());
      }
      out.push_back(mean);
    }
    return out;
  }

  Entries entries_of(const std::vector<std::set<int>>& kept, int l) const {
    Entries out;
    for (int i = 0; i < documents(); ++i) {
      for (const int b : kept[at(i)]) {
        for (int t = 64 * b; t < docs_[at(i)]->end(b); ++t) out[offset_[at(i)] + t] = stored(i, l, t);
      }
    }
    return out;
  }

  std::vector<Vector> personal(const Vector& question, int l) const {
    std::vector<Vector> out(docs_.size(), question);
    if (!options_.personalize || docs_.size() == 1) return out;
    for (int i = 0; i < documents(); ++i) {
      for (int j = 0; j < documents(); ++j) {
        if (j == i) continue;
        const Vector local = moved(l, docs_[at(j)]->layers[at(l)].local_query, j);
        const double cosine = dot(question, local) / std::sqrt(dot(question, question) * dot(local, local));
        for (std::size_t c = 0; c < local.size(); ++c) out[at(i)][c] += std::abs(cosine) * local[c] / (documents() - 1);
      }
    }
    return out;
  }

  double proportion(int i, int l, const Vector& query) const {
    const auto& layer = docs_[at(i)]->layers[at(l)];
    if (layer.block_key.size() < 2) return 0;
    int important = -1;
    int unimportant = -1;
    for (const auto& [b, alpha] : layer.exponent) {
      if (important < 0 || alpha < layer.exponent.at(important) ||
          (alpha == layer.exponent.at(important) && layer.mean.at(b) >= layer.mean.at(important)))
        important = b;
      if (unimportant < 0 || layer.mean.at(b) <= layer.mean.at(unimportant)) unimportant = b;
    }
    const double most = dot(query, key_of(l, layer.block_key.at(important), i));
    const double least = dot(query, key_of(l, layer.block_key.at(unimportant), i));
    const double anchor = dot(query, key_of(l, layer.edge_key, i));
    if (most <= least || !(anchor > least && anchor <= most)) return 0;
    return (most - anchor) / (most - least);
  }

  struct Offer {
    int document;
    int block;
    double rank;
    double score;
  };

  void merge(int l, const std::vector<int>& counts, const std::vector<Vector>& query,
             std::vector<std::set<int>>& kept) const {
    std::vector<Offer> all;
    for (int i = 0; i < documents(); ++i) {
      std::vector<Offer> own;
      for (const auto& [b, mean] : docs_[at(i)]->layers[at(l)].block_key) {
        const Vector key = key_of(l, mean, i);
        const double product = dot(query[at(i)], key);
        own.push_back({i, b, product, product / std::sqrt(dot(query[at(i)], query[at(i)]) * dot(key, key))});
      }
      std::sort(own.begin(), own.end(),
                [](const Offer& a, const Offer& b) { return a.rank != b.rank ? a.rank > b.rank : a.block > b.block; });
      own.resize(at(counts[at(i)]));
      if (options_.zscore) {
        double mean = 0;
        double variance = 0;
        for (const auto& o : own) mean += o.rank / static_cast<double>(own.size());
        for (const auto& o : own) variance += (o.rank - mean) * (o.rank - mean) / static_cast<double>(own.size());
        const bool differ = !own.empty() && own.front().rank != own.back().rank;
        for (auto& o : own) o.score = differ ? (o.rank - mean) / std::sqrt(variance) : 0;
      }
      all.insert(all.end(), own.begin(), own.end());
    }
    const std::size_t keep =
        static_cast<std::size_t>(std::ceil(static_cast<double>(all.size()) / static_cast<double>(docs_.size())));
    std::sort(all.begin(), all.end(), [](const Offer& a, const Offer& b) {
      if (a.score != b.score) return a.score > b.score;
      return a.document != b.document ? a.document > b.document : a.block > b.block;  // of equal ones, the later
    });
    for (std::size_t k = 0; k < keep; ++k) kept[at(all[k].document)].insert(all[k].block);
  }

  std::set<int> to_recompute(const std::vector<std::set<int>>& kept, int l) const {
    std::set<int> out;
    for (int i = 0; i < documents(); ++i) {
      const auto& doc = *docs_[at(i)];
      const auto unusual = outlier_blocks(doc.layers[at(l)].exponent, options_.sigma);
      for (const int b : kept[at(i)]) {
        const int first = 64 * b;
        if (!doc.is_middle(b) || (options_.anchor_block && unusual.count(b) > 0)) {
          for (int t = first; t < doc.end(b); ++t) out.insert(offset_[at(i)] + t);
        } else if (unusual.count(b) > 0) {
          out.insert(offset_[at(i)] + doc.layers[at(l)].representative.at(b));
        }
      }
    }
    return out;
  }

  void recompute(Outcome& r) {
    for (int l = 0; l < h_.n_layer; ++l) {
      r.entries.push_back(entries_of(r.kept[at(l)], l));
      r.recomputed.push_back(options_.recompute ? to_recompute(r.kept[at(l)], l) : std::set<int>());
    }
    std::map<int, int> top;
    for (int l = 0; l < h_.n_layer; ++l) {
      for (const int position : r.recomputed[at(l)]) top[position] = l;
    }
    if (top.empty()) return;
    // All tokens pass through all layers. Above its top layer, a token neither stores its entry nor is seen.
    std::vector<std::int32_t> tokens;
    std::vector<int> positions;
    for (const auto& [position, unused] : top) {
      const int i = document_of(position);
      positions.push_back(position);
      tokens.push_back(docs_[at(i)]->tokens[at(position - offset_[at(i)])]);
    }
    Rows rows(*this, tokens, positions);
    for (int l = 0; l < h_.n_layer; ++l) {
      std::map<int, Entry> own;
      for (const int p : positions) own[p] = stored(document_of(p), l, p - offset_[at(document_of(p))]);
      rows.attention.own = [&](int row) -> const Entry& { return own.at(positions[at(row)]); };
      const Entries old = r.entries[at(l)];
      rows.run(l, r.entries[at(l)], [&](int row) { return r.recomputed[at(l)].count(positions[at(row)]) > 0; });
      if (!options_.fusion) continue;
      for (const int p : r.recomputed[at(l)]) {
        const int i = document_of(p);
        if (i > 0 && p - offset_[at(i)] < options_.fresh) continue;
        r.fusion_shares.push_back(fuse(r.entries[at(l)].at(p).key, old.at(p).key));
        r.fusion_shares.push_back(fuse(r.entries[at(l)].at(p).value, old.at(p).value));
      }
    }
  }

  static double fuse(std::vector<float>& fresh, const std::vector<float>& old) {
    const Vector a(fresh.begin(), fresh.end());
    const Vector b(old.begin(), old.end());
    const double theta = std::min(1.0, std::max(0.0, dot(a, b) / std::sqrt(dot(a, a) * dot(b, b))));
    for (std::size_t i = 0; i < a.size(); ++i) fresh[i] = static_cast<float>(theta * a[i] + (1 - theta) * b[i]);
    return theta;
  }

  int document_of(int position) const {
    int i = 0;
    while (offset_[at(i + 1)] <= position) ++i;
    return i;
  }

  const model::Hparams& h_;
  network::Executor executor_;
  MemoryAccount& account_;
  std::vector<const Document*> docs_;
  std::vector<int> offset_;
  Options options_;
};

}  // namespace winnow::reference
