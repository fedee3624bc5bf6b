// SPDX-License-Identifier: Apache-2.0
#include "policy/observers/tiles.h"

#include <spdlog/fmt/fmt.h>

#include <cstddef>
#include <span>
#include <string>

#include "attention/tiles.h"
#include "base/as_size.h"
#include "policy/observers/request.h"

namespace winnow::policy {

namespace {

class TileColumns : public ObserverOf<attention::ColumnStatistics> {
 public:
  using Wanted = attention::Tiles;

  TileColumns(const Wanted& wanted, const ObservedLayer& layer)
      : sums_({}, layer.shape.query_heads, layer.prompt.tokens), tiles_(sums_, wanted, layer.shape.head_dim) {}

  static ObserverBytes bytes(const Wanted& wanted, const ObservedLayer& layer) {
    const int tokens = layer.prompt.tokens;
    return {as_size(layer.shape.query_heads) * as_size(tokens) * sizeof(float) +
                attention::TileAttention::bytes(layer.shape, wanted, tokens),
            0};
  }

  static std::string state_name(const Wanted& wanted) {
    return fmt::format("tiles of {} after {} before {}", wanted.length, wanted.before, wanted.after);
  }
  static std::size_t state_bytes(const Wanted& wanted, const ObservedLayer& layer, int rows) {
    return attention::TileAttention::state_bytes(layer.shape, wanted, rows);
  }
  void take_state(int rows, std::span<const std::byte> state) override { tiles_.take_state(rows, state); }
  void keep_state(int rows, std::span<std::byte> state) override { tiles_.keep_state(rows, state); }
  void end_layer(const EndedLayer& /*layer*/) override { tiles_.write_sums(); }

  ObserverNeeds needs() const override { return {.queries = true}; }
  void see_rows(const LayerRows& rows, Worker worker) override {
    tiles_.add(rows.queries, rows.scratch, rows.first, rows.count, worker);
  }
  const attention::ColumnStatistics& result() const override { return sums_; }

 private:
  attention::ColumnStatistics sums_;
  attention::TileAttention tiles_;
};

}  // namespace

ObserverPart<attention::ColumnStatistics> observe_tiles(const attention::Tiles& tiles) {
  return {"observe",
          "sum of the attention of all queries to the " + std::to_string(tiles.length) + " tokens of their tile",
          [tiles](const Asking&) { return request<TileColumns, attention::ColumnStatistics>(tiles); }};
}

}  // namespace winnow::policy
