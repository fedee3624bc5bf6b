// SPDX-License-Identifier: Apache-2.0
#include "engine/growing_state.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include "base/as_size.h"

namespace winnow::engine {

std::vector<std::size_t> piece_sizes(std::span<const std::size_t> begin, std::span<const std::size_t> end) {
  std::vector<std::size_t> out;
  for (std::size_t layer = 0; layer < end.size(); ++layer) out.push_back(end[layer] - begin[layer]);
  return out;
}

std::vector<std::byte> GrowingState::joined(int layer, int blocks) const {
  std::vector<std::byte> out;
  for (const auto& piece : pieces().first(as_size(blocks))) {
    const auto bytes = piece->layer(layer);
    out.insert(out.end(), bytes.begin(), bytes.end());
  }
  return out;
}

void GrowingState::add(MemoryAccount& account, const LayerBytes& state) {
  const auto has = [&](const auto& end) { return std::ranges::equal(end, state.sizes(), std::ranges::less_equal()); };
  while (pieces_.size() + 1 < ends_.size() && has(ends_[pieces_.size() + 1])) {
    const auto& begin = ends_[pieces_.size()];
    const auto sizes = piece_sizes(begin, ends_[pieces_.size() + 1]);
    auto piece = std::make_shared<LayerBytes>(account, sizes, "states of a text");
    for (int layer = 0; layer < piece->layers(); ++layer) {
      const auto from = state.layer(layer).subspan(begin[as_size(layer)], sizes[as_size(layer)]);
      std::ranges::copy(from, piece->layer(layer).begin());
    }
    pieces_.push_back(std::move(piece));
  }
}

}  // namespace winnow::engine
