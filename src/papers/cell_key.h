// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "papers/recipe.h"

namespace winnow::papers {

/// What a row and a column select together. Throws InputError where they contradict each other, select what the measure
/// does not have, or leave several methods or protocols.
CellKey key_of(const Recipe& recipe, const Select& row, const Select& column);

}  // namespace winnow::papers
