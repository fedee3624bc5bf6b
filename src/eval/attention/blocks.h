// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "documents/facts.h"
#include "eval/record.h"

namespace winnow::eval {

/// Attention to the representatives of a prompt's middle blocks, layer after layer, and in which layers one stands out
/// (SamKV, appendix A). In each layer blocks are ranked by importance (documents::matters_more).
class BlockRanking {
 public:
  /// REQUIRES: as many blocks as in the layers before, and at least one.
  void add(std::vector<documents::BlockAttention> layer);

  /// What representing() says. REQUIRES: add().
  Record record() const;

 private:
  /// Sums by rank or by distance, and how many were added up.
  struct Sums {
    std::vector<double> sum;
    std::vector<double> count;

    void add(std::size_t place, double x);
    std::vector<double> means() const;
  };
  /// One rank's logarithms of attention, measured and by the power law, in classes of distance.
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
