// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <map>

#include "eval/attention/global_local.h"
#include "eval/attention/measures.h"
#include "eval/attention/parts.h"

namespace winnow::eval {

namespace {

/// Positions that one cache keeps, over all KV heads so far.
struct KeptTally {
  std::vector<double> parts = std::vector<double>(kParts);
  std::array<double, 3> by_source = {};  ///< GlobalLocal::Source
  double second_half = 0;
  double places = 0;
  double entries = 0;
  std::map<std::string, std::vector<double>> kept;

  void add(std::span<const std::int32_t> positions, const GlobalLocal& scores) {
    const int tokens = scores.tokens();
    for (const auto position : positions) {
      parts[as_size(part_of(position, tokens))] += 1;
      by_source[as_size(static_cast<int>(scores.source(position)))] += 1;
      second_half += 2 * position >= tokens ? 1 : 0;
      places += tokens > 1 ? static_cast<double>(position) / (tokens - 1) : 0;
      entries += 1;
    }
  }

  Record record() const {
    const double all = std::max(1.0, entries);
    Record out;
    out.score = second_half / all;
    out.values = {{"position", places / all},
                  {"window", by_source[0] / all},
                  {"local", by_source[1] / all},
                  {"global", by_source[2] / all}};
    auto shares = parts;
    for (double& x : shares) x /= all;
    out.series = kept;
    out.series["parts"] = brief(shares);
    return out;
  }
};

}  // namespace

Measure keeping() {
  return [](Session& session, const TokenizedSample& tokenized, std::vector<Cache>& caches,
            const std::vector<std::vector<float>>&) {
    const auto kept = kept_by(caches);
    std::vector<KeptTally> tallies(caches.size());
    observe(session, tokens_of(tokenized), [&](const LayerAttention& layer) {
      for (int kv_head = 0; kv_head < layer.view.shape.kv_heads; ++kv_head) {
        const GlobalLocal scores(layer, HeadAttention(layer, kv_head), kv_head);
        for (std::size_t c = 0; c < caches.size(); ++c) {
          const auto& positions = kept[c][as_size(layer.view.number)][as_size(kv_head)];
          tallies[c].add(positions, scores);
          tallies[c].kept[fmt::format("kept {}.{}", layer.view.number, kv_head)].assign(positions.begin(),
                                                                                        positions.end());
        }
      }
    });
    std::vector<Record> out;
    for (const auto& tally : tallies) out.push_back(tally.record());
    return out;
  };
}

}  // namespace winnow::eval
