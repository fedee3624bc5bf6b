// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "eval/attention/masses.h"
#include "eval/attention/measures.h"
#include "eval/attention/observed.h"

namespace winnow::eval {

namespace {

constexpr int kPercents[] = {1, 5, 10, 20, 50};

/// Shares of attention of all query heads of the layers so far.
class Concentration {
 public:
  explicit Concentration(AllKept kept) : kept_(std::move(kept)), kept_mass_(kept_.size()), best_(kept_.size()) {}

  void add(const LayerAttention& layer) {
    const auto& shape = layer.view.shape;
    for (int kv_head = 0; kv_head < shape.kv_heads; ++kv_head) {
      const HeadAttention attention(layer, kv_head);
      for (int g = 0; g < shape.group(); ++g)
        add(last_masses(attention, kv_head * shape.group() + g, layer.tokens()), as_size(layer.view.number), kv_head);
    }
  }

  Record record(std::size_t cache) const {
    Record out;
    out.score = mean(kept_mass_[cache]);
    out.values["best"] = mean(best_[cache]);
    out.series["kept_mass"] = brief(kept_mass_[cache]);
    for (std::size_t i = 0; i < std::size(kPercents); ++i) {
      const std::string name = fmt::format("mass@{}", kPercents[i]);
      out.values[name] = mean(best_of_all_[i]);
      out.series[name] = brief(best_of_all_[i]);
    }
    return out;
  }

 private:
  void add(const std::vector<double>& masses, std::size_t layer, int kv_head) {
    const int tokens = static_cast<int>(masses.size());
    for (std::size_t i = 0; i < std::size(kPercents); ++i)
      best_of_all_[i].push_back(share_in_best(masses, (tokens * kPercents[i] + 99) / 100));
    for (std::size_t c = 0; c < kept_.size(); ++c) {
      const auto& positions = kept_[c][layer][as_size(kv_head)];
      kept_mass_[c].push_back(share_at(masses, positions));
      best_[c].push_back(share_in_best(masses, static_cast<int>(positions.size())));
    }
  }

  AllKept kept_;
  std::vector<double> best_of_all_[std::size(kPercents)];
  std::vector<std::vector<double>> kept_mass_;  ///< [cache]
  std::vector<std::vector<double>> best_;       ///< [cache]
};

}  // namespace

Measure concentrating() {
  return [](Session& session, const TokenizedSample& tokenized, std::vector<Cache>& caches,
            const std::vector<std::vector<float>>&) {
    Concentration concentration(kept_by(caches));
    observe(session, tokens_of(tokenized), [&](const LayerAttention& layer) { concentration.add(layer); });
    std::vector<Record> out;
    for (std::size_t c = 0; c < caches.size(); ++c) out.push_back(concentration.record(c));
    return out;
  };
}

}  // namespace winnow::eval
