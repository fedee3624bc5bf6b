// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "documents/document.h"

/// Which layers should decide how many blocks are offered (samkv's option `deciding`), from documents of a model.
namespace winnow::documents {

/// True if each layer of a document singles out the block that matters most in all layers: the middle block whose
/// exponent has the smallest mean rank over the layers (ties: the later) is an outlier there. `layers` [layer][middle
/// block], as many blocks in each.
std::vector<bool> singling_out(std::span<const std::vector<Representative>> layers);

/// For each layer in how many documents it does so. REQUIRES: uncompressed documents of one model.
std::vector<int> layer_scores(std::span<const std::shared_ptr<const Document>> documents);

/// The exponents of a document's middle blocks, [layer][middle block].
std::vector<std::vector<float>> exponents_of(const DocumentHead& head);

/// True if one of the middle blocks can be an outlier at all. One of n equal values that differs lies sqrt(n - 1)
/// deviations from the mean, and none can lie farther.
bool is_long_enough(const BlockLayout& layout);
/// The fewest tokens with which it can.
int least_tokens();

/// How many of the last layers: those, at most half of all, whose mean score is the highest (ties: more of them);
/// usual_deciding_layers() when none has any.
int deciding_layers(std::span<const int> scores);

}  // namespace winnow::documents
