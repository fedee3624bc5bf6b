// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "winnow/policy/method.h"

/// Entries that are kept together or not at all, but for the last ones of a budget.
namespace winnow::policy {

/// Gives a method the parts that its `pieces` ask for. Where heads choose together, pieces are those of the sum of
/// their scores. The best pieces are kept, and the first entries of the last one. Where heads share a layer's budget by
/// need, need is measured on pieces: every entry counts as much as its piece. REQUIRES: `pieces` is set; `over_heads`,
/// where it is set, is not measured on pieces yet, and no layer chooses.
void keep_pieces(SelectionParts& selection);

/// Each evictable entry with the score of its head's piece.
Scores of_pieces(const DividePart& divide, const LayerView& view, Scores scores, const AlwaysKept& always_kept);

/// Scores of each entry over the heads [first, end), [n]. One that is no number counts as the least.
std::vector<double> sum_over_heads(const Scores& scores, int first, int end);

}  // namespace winnow::policy
