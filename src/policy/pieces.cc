// SPDX-License-Identifier: Apache-2.0
#include "policy/pieces.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>

#include "base/as_size.h"

namespace winnow::policy {

namespace {

std::vector<Piece> pieces_of_head(const DividePart& divide, const LayerView& view, const Scores& scores, int head,
                                  const AlwaysKept& always_kept) {
  return divide.call(view, sum_over_heads(scores, head, head + 1), always_kept);
}

/// The first `count` entries of pieces, ascending.
std::vector<std::int32_t> first_entries(const std::vector<Piece>& pieces, int count) {
  std::vector<std::int32_t> out;
  auto left = as_size(std::max(0, count));
  for (const Piece& piece : pieces) {
    const auto taken = std::min(left, piece.entries.size());
    out.insert(out.end(), piece.entries.begin(), piece.entries.begin() + static_cast<std::ptrdiff_t>(taken));
    left -= taken;
    if (left == 0) break;
  }
  std::sort(out.begin(), out.end());
  return out;
}

SelectPart by_layer(const DividePart& divide) {
  return {divide.text + ", the same in all heads of a layer",
          [divide](const LayerView& view, const Scores& scores, std::span<const int> counts,
                   const AlwaysKept& always_kept) {
            const auto pieces = divide.call(view, sum_over_heads(scores, 0, scores.heads()), always_kept);
            std::vector<std::vector<std::int32_t>> out;
            for (const int count : counts) out.push_back(first_entries(pieces, count));
            return out;
          }};
}

SelectPart by_head(const DividePart& divide) {
  return {divide.text + ", for each head", [divide](const LayerView& view, const Scores& scores,
                                                    std::span<const int> counts, const AlwaysKept& always_kept) {
            std::vector<std::vector<std::int32_t>> out;
            for (int head = 0; head < scores.heads(); ++head)
              out.push_back(first_entries(pieces_of_head(divide, view, scores, head, always_kept), counts[head]));
            return out;
          }};
}

HeadBudgetPart measured_on_pieces(HeadBudgetPart spread, const DividePart& divide) {
  return {spread.text + ", counted over these pieces",
          [divide, inner = std::move(spread.call)](const LayerView& view, int mean, const Scores& scores,
                                                   const AlwaysKept& always_kept) {
            return inner(view, mean, of_pieces(divide, view, scores, always_kept), always_kept);
          }};
}

}  // namespace

void keep_pieces(SelectionParts& selection) {
  const Pieces& pieces = *selection.pieces;
  const bool each_head = pieces.per == Pieces::Per::head || selection.over_heads;
  selection.select = each_head ? by_head(pieces.divide) : by_layer(pieces.divide);
  if (selection.over_heads) selection.over_heads = measured_on_pieces(std::move(selection.over_heads), pieces.divide);
}

Scores of_pieces(const DividePart& divide, const LayerView& view, Scores scores, const AlwaysKept& always_kept) {
  for (int head = 0; head < scores.heads(); ++head) {
    for (const Piece& piece : pieces_of_head(divide, view, scores, head, always_kept)) {
      for (const auto j : piece.entries) scores.head(head)[j] = static_cast<float>(piece.score);
    }
  }
  return scores;
}

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

}  // namespace winnow::policy
