// SPDX-License-Identifier: Apache-2.0
#include "policy/chunks.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

namespace winnow::policy {

namespace {

/// Sorts the entries of a chunk in the order in which they are kept: by distance from `best`; of equally near ones the
/// later first.
void order_from(std::int32_t best, std::vector<std::int32_t>& entries) {
  std::sort(entries.begin(), entries.end(), [best](std::int32_t a, std::int32_t b) {
    return std::abs(a - best) != std::abs(b - best) ? std::abs(a - best) < std::abs(b - best) : a > b;
  });
}

Piece chunk(std::span<const double> scores, int first, int end) {
  Piece out;
  std::int32_t best = first;
  for (int j = first; j < end; ++j) {
    out.score += scores[j];
    out.entries.push_back(j);
    if (scores[j] >= scores[best]) best = j;
  }
  out.score /= end - first;
  order_from(best, out.entries);
  return out;
}

/// Sorted from the best to the worst; ties go to the later chunk.
std::vector<Piece> ranked_chunks(std::span<const double> scores, int length, const AlwaysKept& always_kept) {
  std::vector<Piece> out;
  const int end = static_cast<int>(scores.size()) - always_kept.recent;
  for (int first = always_kept.sinks; first < end; first += length)
    out.push_back(chunk(scores, first, std::min(length + first, end)));
  std::reverse(out.begin(), out.end());
  std::stable_sort(out.begin(), out.end(), [](const Piece& a, const Piece& b) { return a.score > b.score; });
  return out;
}

}  // namespace

DividePart chunks_of(int length) {
  return {fmt::format("whole chunks of {} positions", length),
          [length](const LayerView&, std::span<const double> scores, const AlwaysKept& always_kept) {
            return ranked_chunks(scores, length, always_kept);
          }};
}

}  // namespace winnow::policy
