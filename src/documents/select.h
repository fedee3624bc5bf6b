// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "documents/joint.h"

/// SamKV's selection of blocks (docs/methods.md, samkv, steps 2 to 4): pure functions of the documents' facts and the
/// question's mean query.
namespace winnow::documents {

enum class Personalize : std::uint8_t { off, on };
/// zscore: the inner product, standardised over the blocks that the document offers.
enum class BlockScore : std::uint8_t { cosine, zscore };

struct SelectOptions {
  Personalize personalize = Personalize::on;
  BlockScore score = BlockScore::cosine;
  int deciding_layers = 1;  ///< the last layers that decide how many blocks are offered, at most all
};

/// Number of last layers that decide, from the share in the paper (appendix A.2): 5 of 32 (Mistral-7B), 4 of 32
/// (Llama-3.1-8B) and 5 of 36 (Qwen2.5-3B) are 14 of 100. Rounded to the nearest, at least 1.
int usual_deciding_layers(int layers);

/// Middle blocks, [layer][document], ascending, counted from the first middle block.
using MiddleBlocks = std::vector<std::vector<std::vector<int>>>;

/// `question`: mean query, rotated, [layer][H_q · d].
MiddleBlocks select_blocks(const Joint& joint, std::span<const std::vector<double>> question,
                           const SelectOptions& options);

/// True if block `a` is more important than `b` by their representatives: its attention decays more slowly; at equal
/// exponents it is larger; ties go to the later block.
bool matters_more(const Representative& a, const Representative& b);

/// The representatives with unusually slow decay of attention: exponents below mean - factor * deviation (population).
/// Tokens, ascending.
std::vector<std::int32_t> outliers(std::span<const Representative> representatives, double factor);

}  // namespace winnow::documents
