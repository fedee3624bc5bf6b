// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "documents/document.h"

/// Finds, from documents of a model, the layers that should decide how many blocks are offered (samkv's option
/// `deciding`).
namespace winnow::documents {

/// [layer]: true if the layer singles out the block that matters most in all layers. That is the middle block whose
/// exponent has the smallest mean rank over the layers (ties: the later); it must be an outlier in the layer. `layers`
/// [layer][middle block], the same number of blocks in each.
std::vector<bool> singling_out(std::span<const std::vector<Representative>> layers);

/// [layer]: number of documents in which the layer singles out that block. REQUIRES: uncompressed documents of one
/// model.
std::vector<int> layer_scores(std::span<const std::shared_ptr<const Document>> documents);

/// The exponents of a document's middle blocks, [layer][middle block].
std::vector<std::vector<float>> exponents_of(const DocumentHead& head);

/// True if a middle block can be an outlier at all. The greatest distance from the mean of one of n values, all others
/// equal, is sqrt(n - 1) deviations.
bool is_long_enough(const BlockLayout& layout);
/// The fewest tokens for which is_long_enough().
int least_tokens();

/// Number of the last layers that should decide: at most half of all, with the highest mean score (ties: more layers);
/// usual_deciding_layers() if no layer has a score.
int deciding_layers(std::span<const int> scores);

}  // namespace winnow::documents
