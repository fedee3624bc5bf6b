// SPDX-License-Identifier: Apache-2.0
#include "policy/chunks.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <utility>

namespace winnow::policy {

namespace {

struct Chunk {
  int first;
  int count;
  double score;
};

/// In the order of their positions.
std::vector<Chunk> chunks_of(const std::vector<double>& scores, int length, const AlwaysKept& always_kept) {
  std::vector<Chunk> out;
  const int end = static_cast<int>(scores.size()) - always_kept.recent;
  for (int first = always_kept.sinks; first < end; first += length) {
    const int count = std::min(length, end - first);
    const auto begin = scores.begin() + first;
    out.push_back({first, count, std::accumulate(begin, begin + count, 0.0) / count});
  }
  return out;
}

/// From the best to the worst; of equals the later first.
std::vector<Chunk> ranked(std::vector<Chunk> chunks) {
  std::sort(chunks.begin(), chunks.end(),
            [](const Chunk& a, const Chunk& b) { return a.score != b.score ? a.score > b.score : a.first > b.first; });
  return chunks;
}

/// The `count` positions of a chunk that are nearest to its best one; of equals the later.
std::vector<std::int32_t> nearest_to_best(const Chunk& chunk, const std::vector<double>& scores, int count) {
  int best = chunk.first;
  for (int j = chunk.first; j < chunk.first + chunk.count; ++j) {
    if (scores[j] >= scores[best]) best = j;
  }
  std::vector<std::int32_t> all(chunk.count);
  std::iota(all.begin(), all.end(), chunk.first);
  std::sort(all.begin(), all.end(), [best](std::int32_t a, std::int32_t b) {
    return std::abs(a - best) != std::abs(b - best) ? std::abs(a - best) < std::abs(b - best) : a > b;
  });
  all.resize(count);
  return all;
}

std::vector<std::int32_t> best_chunks(const std::vector<double>& scores, int count, int length,
                                      const AlwaysKept& always_kept) {
  std::vector<std::int32_t> out;
  for (const Chunk& chunk : ranked(chunks_of(scores, length, always_kept))) {
    const int left = count - static_cast<int>(out.size());
    if (left <= 0) break;
    const auto part = nearest_to_best(chunk, scores, std::min(left, chunk.count));
    out.insert(out.end(), part.begin(), part.end());
  }
  std::sort(out.begin(), out.end());
  return out;
}

/// Over the heads [first, end). A score that is no number counts as the least.
std::vector<double> sum_over_heads(const Scores& scores, int first, int end) {
  std::vector<double> out(scores.size());
  for (int head = first; head < end; ++head) {
    for (std::size_t j = 0; j < out.size(); ++j) {
      const float x = scores.head(head)[j];
      out[j] += std::isnan(x) ? -std::numeric_limits<double>::infinity() : x;
    }
  }
  return out;
}

SelectPart by_layer(int length) {
  return {fmt::format("whole chunks of {} positions, by the layer", length),
          [length](const LayerView&, const Scores& scores, std::span<const int> counts, const AlwaysKept& always_kept) {
            const auto sums = sum_over_heads(scores, 0, scores.heads());
            std::vector<std::vector<std::int32_t>> out;
            for (const int count : counts) out.push_back(best_chunks(sums, count, length, always_kept));
            return out;
          }};
}

SelectPart by_head(int length) {
  return {fmt::format("whole chunks of {} positions, by the head", length),
          [length](const LayerView&, const Scores& scores, std::span<const int> counts, const AlwaysKept& always_kept) {
            std::vector<std::vector<std::int32_t>> out;
            for (int head = 0; head < scores.heads(); ++head) {
              const auto own = sum_over_heads(scores, head, head + 1);
              out.push_back(best_chunks(own, counts[head], length, always_kept));
            }
            return out;
          }};
}

/// Each entry with the score of its head's chunk.
Scores of_chunks(const Scores& scores, int length, const AlwaysKept& always_kept) {
  Scores out = scores;
  for (int head = 0; head < scores.heads(); ++head) {
    for (const Chunk& chunk : chunks_of(sum_over_heads(scores, head, head + 1), length, always_kept)) {
      std::fill_n(out.head(head).begin() + chunk.first, chunk.count, static_cast<float>(chunk.score));
    }
  }
  return out;
}

HeadBudgetPart measured_on_chunks(HeadBudgetPart spread, int length) {
  return {spread.text + ", measured on chunks",
          [length, inner = std::move(spread.call)](const LayerView& view, int mean, const Scores& scores,
                                                   const AlwaysKept& always_kept) {
            return inner(view, mean, of_chunks(scores, length, always_kept), always_kept);
          }};
}

}  // namespace

void keep_chunks(SelectionParts& selection) {
  const Chunks& chunks = *selection.chunks;
  const bool each_head = chunks.per == Chunks::Per::head || selection.over_heads || selection.over_all_heads;
  selection.select = each_head ? by_head(chunks.length) : by_layer(chunks.length);
  if (selection.over_heads) selection.over_heads = measured_on_chunks(std::move(selection.over_heads), chunks.length);
}

}  // namespace winnow::policy
