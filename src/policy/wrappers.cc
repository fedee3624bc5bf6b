#include "policy/wrappers.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <string>

#include "policy/select.h"
#include "policy/spread.h"
#include "winnow/error.h"

namespace winnow::policy::wrappers {

namespace {

[[noreturn]] void refuse(const char* wrapper, const Method& inner, const std::string& why) {
  throw UsageError(fmt::format("{}({}) is not possible: {}", wrapper, inner.name, why));
}

/// What all wrappers need: scores that are ranked.
void check(const char* wrapper, const Method& inner) {
  if (!inner.fixed.empty()) refuse(wrapper, inner, inner.fixed);
  if (!inner.score) refuse(wrapper, inner, fmt::format("{} ranks nothing", inner.name));
}

/// Chunks of consecutive evictable positions, the last one possibly shorter.
struct Chunk {
  int first;
  int count;
  double score;
};

/// Chunks from the best to the worst; of equals the later first.
std::vector<Chunk> ranked(const std::vector<double>& scores, int length, const Forced& forced) {
  std::vector<Chunk> out;
  const int end = static_cast<int>(scores.size()) - forced.recent;
  for (int first = forced.sinks; first < end; first += length) {
    const int count = std::min(length, end - first);
    const auto begin = scores.begin() + first;
    out.push_back({first, count, std::accumulate(begin, begin + count, 0.0) / count});
  }
  std::sort(out.begin(), out.end(),
            [](const Chunk& a, const Chunk& b) { return a.score != b.score ? a.score > b.score : a.first > b.first; });
  return out;
}

/// The `count` positions of a chunk that are nearest to its best one; of equals the later.
std::vector<std::int32_t> nearest_to_best(const Chunk& chunk, const std::vector<double>& scores, int count) {
  int best = chunk.first;
  for (int j = chunk.first; j < chunk.first + chunk.count; ++j) {
    if (scores[static_cast<std::size_t>(j)] >= scores[static_cast<std::size_t>(best)]) best = j;
  }
  std::vector<std::int32_t> all(static_cast<std::size_t>(chunk.count));
  std::iota(all.begin(), all.end(), chunk.first);
  std::sort(all.begin(), all.end(), [best](std::int32_t a, std::int32_t b) {
    return std::abs(a - best) != std::abs(b - best) ? std::abs(a - best) < std::abs(b - best) : a > b;
  });
  all.resize(static_cast<std::size_t>(count));
  return all;
}

std::vector<std::int32_t> best_chunks(const std::vector<double>& scores, int count, int length, const Forced& forced) {
  std::vector<std::int32_t> out;
  for (const Chunk& chunk : ranked(scores, length, forced)) {
    const int left = count - static_cast<int>(out.size());
    if (left <= 0) break;
    const auto part = nearest_to_best(chunk, scores, std::min(left, chunk.count));
    out.insert(out.end(), part.begin(), part.end());
  }
  std::sort(out.begin(), out.end());
  return out;
}

/// A score that is no number counts as the least.
std::vector<double> sum_over_heads(const Scores& scores, int first, int end) {
  std::vector<double> out(static_cast<std::size_t>(scores.size()));
  for (int head = first; head < end; ++head) {
    for (std::size_t j = 0; j < out.size(); ++j) {
      const float x = scores.head(head)[j];
      out[j] += std::isnan(x) ? -std::numeric_limits<double>::infinity() : x;
    }
  }
  return out;
}

SelectPart select_chunks(int length, bool per_layer) {
  return {
      fmt::format("whole chunks of {} positions, by the {}", length, per_layer ? "layer" : "head"),
      [length, per_layer](const LayerView&, const Scores& scores, std::span<const int> counts, const Forced& forced) {
        std::vector<std::vector<std::int32_t>> out;
        for (int head = 0; head < scores.heads(); ++head) {
          const auto sums =
              per_layer ? sum_over_heads(scores, 0, scores.heads()) : sum_over_heads(scores, head, head + 1);
          out.push_back(best_chunks(sums, counts[static_cast<std::size_t>(head)], length, forced));
        }
        return out;
      }};
}

}  // namespace

Wrapper ada() {
  return {.name = "ada",
          .summary = "ada(X): heads share a layer's budget by need",
          .paper =
              "Feng et al. 2024, Ada-KV: Optimizing KV Cache Eviction by Adaptive Budget Allocation for Efficient LLM "
              "Inference",
          .options = adaptive_options(),
          .apply = [](const Method& inner, const Options& options) {
            if (inner.one_set_per_layer) refuse("ada", inner, "it keeps one set for all heads of a layer");
            check("ada", inner);
            if (inner.over_heads) refuse("ada", inner, "its heads share the budget by need already");
            Method out = inner;
            out.over_heads = adaptive(options);
            return out;
          }};
}

Wrapper pyramid() {
  return {.name = "pyramid",
          .summary = "pyramid(X): the budget falls from the first layer to the last",
          .paper = "Cai et al. 2024, PyramidKV: Dynamic KV Cache Compression based on Pyramidal Information Funneling",
          .options = {pyramid_option()},
          .apply = [](const Method& inner, const Options& options) {
            if (inner.one_set_per_layer && !inner.chunked) refuse("pyramid", inner, "it keeps as much in every layer");
            check("pyramid", inner);
            if (inner.over_layers) refuse("pyramid", inner, "its layers share the budget as a pyramid already");
            Method out = inner;
            out.over_layers = policy::pyramid(options.number("beta"));
            return out;
          }};
}

Wrapper chunk() {
  return {
      .name = "chunk",
      .summary = "chunk(X): whole chunks of consecutive positions stay",
      .paper =
          "Liu et al. 2025, ChunkKV: Semantic-Preserving KV Cache Compression for Efficient Long-Context LLM Inference",
      .options = {{"length", Option::Integer{20, 1, 65536}, "positions of a chunk"},
                  {"per", Option::Choice{"layer", {"layer", "head"}},
                   "whether all heads of a layer keep the same chunks"}},
      .apply = [](const Method& inner, const Options& options) {
        const bool per_layer = options.text("per") == "layer";
        check("chunk", inner);
        if (inner.chunked) refuse("chunk", inner, "it keeps whole chunks already");
        if (per_layer && inner.over_heads)
          refuse("chunk", inner, "per=layer keeps one set for all heads, but these share the budget by need");
        Method out = inner;
        out.chunked = true;
        out.select = select_chunks(options.integer("length"), per_layer);
        out.one_set_per_layer = out.one_set_per_layer || per_layer;
        return out;
      }};
}

}  // namespace winnow::policy::wrappers
