// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/as_size.h"
#include "documents/ask_method.h"

namespace winnow::documents::methods {

namespace {

enum class Schedule : std::uint8_t { fixed, decreasing };

/// Number of tokens that continue at a layer >= 1. `decreasing` falls from 1.5 of the share at layer 1 to 0.5 of it at
/// the last layer, so that the mean is the share.
int count_at(int layer, int layers, double share, Schedule schedule, int tokens) {
  if (schedule == Schedule::decreasing && layers > 2) share *= 1.5 - static_cast<double>(layer - 1) / (layers - 2);
  return std::clamp(static_cast<int>(std::ceil(share * tokens)), 0, tokens);
}

/// Squared distance of each row's new value from its stored one.
std::vector<double> deviations(ChosenTokens& chosen, JointScratch& stored, int layer) {
  std::vector<int> rows(as_size(chosen.rows()));
  std::iota(rows.begin(), rows.end(), 0);
  const auto made = chosen.project(layer, rows);
  const std::size_t width = rows.empty() ? 0 : made.values.size() / rows.size();
  std::vector<float> old(width);
  std::vector<double> out(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    stored.values(stored.rows_below(chosen.positions()[i]), old);
    for (std::size_t c = 0; c < width; ++c) {
      const double difference = static_cast<double>(made.values[i * width + c]) - static_cast<double>(old[c]);
      out[i] += difference * difference;
    }
  }
  return out;
}

/// Rows with the largest deviations, ascending; ties go to the later row.
std::vector<int> largest(std::span<const double> deviation, int count) {
  std::vector<int> rows(deviation.size());
  std::iota(rows.begin(), rows.end(), 0);
  std::sort(rows.begin(), rows.end(),
            [&](int a, int b) { return deviation[a] != deviation[b] ? deviation[a] > deviation[b] : a > b; });
  rows.resize(std::min(rows.size(), as_size(count)));
  std::sort(rows.begin(), rows.end());
  return rows;
}

Steps run_cacheblend(const AskContext& context) {
  const auto& joint = context.joint;
  const int layers = context.hparams().n_layer;
  const double share = context.options.number("share");
  const auto schedule = context.options.text("schedule") == "fixed" ? Schedule::fixed : Schedule::decreasing;
  Assembly assembly(context.session, joint, context.cache, joint.tokens());
  {
    const PhaseTimer timer(context.asked, "assemble");
    const auto everything = positions_of(joint, joint.everything());
    ChosenTokens chosen(context.session, joint.token_ids(), everything);
    const std::vector<int> top(everything.size(), layers - 1);
    for (int layer = 0; layer < layers; ++layer) {
      assembly.scratch().load(layer, joint.everything());
      if (layer == 1 || (layer > 1 && schedule == Schedule::decreasing)) {
        const int count = count_at(layer, layers, share, schedule, joint.tokens());
        chosen.keep(largest(deviations(chosen, assembly.scratch(), layer), count));
      }
      const std::vector<std::int32_t> flowing(chosen.positions().begin(), chosen.positions().end());
      assembly.loaded_layer(layer, chosen, flowing, top);
      co_yield kPause;
    }
  }
  auto answering = answer(context, assembly);
  while (answering.advance()) co_yield kPause;
}

}  // namespace

/// CacheBlend (Yao et al., 2024, "CacheBlend: Fast Large Language Model Serving for RAG with Cached Knowledge Fusion"):
/// keeps all entries. All tokens pass the first layer. Those whose values in the second layer differ the most from the
/// stored ones are recomputed in the following layers.
///   share     share of the tokens that are recomputed
///   schedule  fixed: the same tokens in all layers; decreasing: in each layer fewer of those of the layer before
AskMethod cacheblend() {
  return {
      .name = "cacheblend",
      .summary = "keeps every entry and recomputes the tokens whose values in the second layer deviate most",
      .paper = "Yao et al. 2024, CacheBlend: Fast Large Language Model Serving for RAG with Cached Knowledge Fusion",
      .options = {{"share", policy::Option::Number{0.15, 0, 1},
                   "share of the tokens that are recomputed after the first layer"},
                  {"schedule", policy::Option::Choice{"fixed", {"fixed", "decreasing"}},
                   "whether all layers recompute the same tokens, or later layers fewer and fewer"}},
      .run = run_cacheblend};
}

}  // namespace winnow::documents::methods
