// SPDX-License-Identifier: Apache-2.0
#include "server/kept/positions.h"

#include <span>

namespace winnow::server {

namespace {

std::vector<Run> runs_of(std::span<const std::int32_t> positions) {
  std::vector<Run> out;
  for (const auto position : positions) {
    if (out.empty() || position != out.back().last + 1) {
      out.push_back({position, position});
    } else {
      out.back().last = position;
    }
  }
  out.shrink_to_fit();
  return out;
}

}  // namespace

KeptPositions::KeptPositions(const Positions& positions, int seen) : seen_(seen) {
  std::size_t entries = 0;
  std::size_t heads = 0;
  for (const auto& of_layer : positions) {
    auto& layer = layers_.emplace_back();
    for (const auto& of_head : of_layer) {
      layer.push_back(runs_of(of_head));
      entries += of_head.size();
      ++heads;
    }
  }
  if (heads > 0) entries_per_head_ = static_cast<double>(entries) / static_cast<double>(heads);
}

std::size_t KeptPositions::bytes() const {
  std::size_t out = 0;
  for (const auto& layer : layers_) {
    for (const auto& runs : layer) out += sizeof(runs) + runs.capacity() * sizeof(Run);
  }
  return out;
}

}  // namespace winnow::server
