// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "winnow/policy/method.h"

/// Pieces: entries that are kept together or not at all, except for the last piece of a budget.
namespace winnow::policy {

/// Gives a method the parts for its `pieces`. The best pieces are kept, and the first entries of the last one. If heads
/// choose together, pieces are ranked by the sum of the heads' scores. If heads share a layer's budget by need, each
/// entry counts with its piece's score. REQUIRES: `pieces` is set; if `over_heads` is set, it does not use pieces yet,
/// and `pieces->per` is not `layer`.
void keep_pieces(SelectionParts& selection);

/// Scores in which each evictable entry has the score of its head's piece.
Scores of_pieces(const DividePart& divide, const LayerView& view, Scores scores, const AlwaysKept& always_kept);

/// Sum of scores over the heads [first, end), [n]. NaN counts as the lowest score.
std::vector<double> sum_over_heads(const Scores& scores, int first, int end);

}  // namespace winnow::policy
