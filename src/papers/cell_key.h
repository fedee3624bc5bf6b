// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "papers/recipe.h"

namespace winnow::papers {

/// The cell that a row and a column select. Throws InputError if they contradict each other, select something that the
/// measure lacks, or leave several methods or protocols.
CellKey key_of(const Recipe& recipe, const Select& row, const Select& column);

}  // namespace winnow::papers
