#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "multi/joint.h"

/// SamKV's choice of blocks (METHODS.md, steps 2 to 4): pure functions of the documents' facts and the question's mean
/// query.
namespace winnow::multi {

enum class Personalize : std::uint8_t { off, on };
enum class BlockScore : std::uint8_t { cosine, zscore };

struct SelectOptions {
  Personalize personalize = Personalize::on;
  BlockScore score = BlockScore::cosine;
  int deciding_layers =
      0;  ///< the last layers that decide how many blocks are offered; 0: an eighth of all, rounded up
};

/// Middle blocks, [layer][document], ascending, counted from the first middle block.
using MiddleBlocks = std::vector<std::vector<std::vector<int>>>;

/// `question` [layer][H_q * d]: the mean query, rotated.
MiddleBlocks select_blocks(const Joint& joint, std::span<const std::vector<double>> question,
                           const SelectOptions& options);

/// The representatives of blocks that attention to falls off the slowest, unusually so: exponents below mean - factor *
/// deviation (population). Tokens, ascending.
std::vector<std::int32_t> outliers(std::span<const Representative> representatives, double factor);

}  // namespace winnow::multi
