// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "documents/facts.h"
#include "eval/record.h"

namespace winnow::eval {

/// Attention to the representatives of a prompt's middle blocks in each layer, and the layers in which one block stands
/// out (SamKV, appendix A). Each layer ranks the blocks by importance (documents::matters_more).
class BlockRanking {
 public:
  /// REQUIRES: the same number of blocks in each layer, at least one.
  void add(std::vector<documents::BlockAttention> layer);

  /// The record that representing() describes. REQUIRES: add() was called.
  Record record() const;

 private:
  /// Sums and counts, by rank or by distance.
  struct Sums {
    std::vector<double> sum;
    std::vector<double> count;

    void add(std::size_t place, double x);
    std::vector<double> means() const;
  };
  /// Logarithms of the attention that one rank gets, measured and by the power law, by class of distance.
  struct Course {
    Sums measured;
    Sums law;

    void add(const documents::BlockAttention& block);
  };

  std::vector<std::vector<documents::Representative>> layers_;
  Sums exponents_;  ///< by rank
  Sums attention_;
  Sums explained_;
  Course first_;  ///< the most important block
  Course last_;
};

}  // namespace winnow::eval
