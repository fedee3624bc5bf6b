// SPDX-License-Identifier: Apache-2.0
#include "eval/attention/blocks.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "documents/calibrate.h"
#include "documents/select.h"
#include "eval/attention/measures.h"
#include "eval/attention/observed.h"

namespace winnow::eval {

namespace {

using documents::BlockAttention;

/// The class of a distance: 1, 2 to 3, 4 to 7, …
std::size_t class_of(std::size_t distance) { return static_cast<std::size_t>(std::bit_width(distance)) - 1; }

documents::LayerAttention seen(const LayerAttention& layer) {
  return {layer.view.shape, &layer.view.scratch, layer.queries, layer.logsums, layer.sums, layer.diagonal};
}

}  // namespace

void BlockRanking::Sums::add(std::size_t place, double x) {
  if (place >= sum.size()) {
    sum.resize(place + 1);
    count.resize(place + 1);
  }
  sum[place] += x;
  count[place] += 1;
}

std::vector<double> BlockRanking::Sums::means() const {
  auto out = sum;
  for (std::size_t i = 0; i < out.size(); ++i) out[i] /= std::max(1.0, count[i]);
  return out;
}

void BlockRanking::Course::add(const BlockAttention& block) {
  for (std::size_t i = 0; i < block.curve.size(); ++i) {
    const auto x = static_cast<double>(i + 1);
    const auto place = class_of(i + 1);
    measured.add(place, std::log10(std::max(block.curve[i], documents::kLeastAttention)));
    law.add(place, block.law.log_scale / std::numbers::ln10 - block.law.exponent * std::log10(x));
  }
}

void BlockRanking::add(std::vector<BlockAttention> layer) {
  auto& representatives = layers_.emplace_back();
  for (const auto& block : layer) representatives.push_back(block.representative);
  std::sort(layer.begin(), layer.end(), [](const BlockAttention& a, const BlockAttention& b) {
    return documents::matters_more(a.representative, b.representative);
  });
  for (std::size_t rank = 0; rank < layer.size(); ++rank) {
    const auto& block = layer[rank];
    exponents_.add(rank, static_cast<double>(block.representative.exponent));
    attention_.add(rank, static_cast<double>(block.representative.attention));
    explained_.add(rank, block.law.explained);
  }
  first_.add(layer.front());
  last_.add(layer.back());
}

Record BlockRanking::record() const {
  std::vector<double> stable;
  for (const bool is_stable : documents::singling_out(layers_)) stable.push_back(is_stable ? 1 : 0);
  const auto late = as_size(documents::usual_deciding_layers(static_cast<int>(stable.size())));
  const auto early = stable.size() - std::min(late, stable.size());
  const auto exponents = exponents_.means();
  const auto attention = attention_.means();
  const auto explained = explained_.means();
  Record out;
  out.score = mean(stable);
  out.values = {{"stable_early", mean(std::span(stable).first(early))},
                {"stable_late", mean(std::span(stable).subspan(early))},
                {"exponent", mean(exponents)},
                {"exponent_first", exponents.front()},
                {"exponent_last", exponents.back()},
                {"attention_first", attention.front()},
                {"attention_last", attention.back()},
                {"explained", mean(explained)},
                {"explained_first", explained.front()},
                {"explained_last", explained.back()}};
  out.series = {{"stable", stable},
                {"exponents", brief(exponents)},
                {"attention", brief(attention)},
                {"first", brief(first_.measured.means())},
                {"first_law", brief(first_.law.means())},
                {"last", brief(last_.measured.means())},
                {"last_law", brief(last_.law.means())}};
  return out;
}

Measure representing() {
  return [](Session& session, const TokenizedSample& tokenized, std::vector<Cache>& caches,
            const std::vector<std::vector<float>>&) {
    Record record;
    if (documents::is_long_enough({tokenized.tokens()})) {
      BlockRanking ranking;
      observe(session, tokens_of(tokenized),
              [&](const LayerAttention& layer) { ranking.add(documents::attention_to_blocks(seen(layer))); });
      record = ranking.record();
    } else {
      record.skipped = fmt::format("the prompt has {} tokens, but blocks can only be compared from {} tokens on",
                                   tokenized.tokens(), documents::least_tokens());
    }
    return std::vector(caches.size(), record);
  };
}

}  // namespace winnow::eval
