// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/memory.h"
#include "base/worker.h"
#include "model/weights.h"
#include "network/packed_set.h"

namespace winnow::network {

/// When matrices are multiplied in bf16.
enum class Packing : std::uint8_t {
  none,      ///< never
  by_rows,   ///< one layer at a time, in passes of enough rows
  layer,     ///< one layer at a time, in every pass
  resident,  ///< all layers, which stay packed: in every pass and in every step
};

/// The matrices of all layers, and the output matrix.
std::vector<const ggml_tensor*> all_matrices(const model::Weights& weights);

/// Memory for packed matrices, and which layer's are in it.
struct PackedRoom {
  std::optional<PackedSet> set;  ///< none: there was no room
  int layer = -1;                ///< kAllLayers: all; negative: none
  static constexpr int kAllLayers = 1 << 30;
};

/// Rows on their way through the layers: whether their products are on packed matrices is settled when the pass begins.
/// Passes may take turns; they share the memory, which lives as long as any of them. Move-only.
class Pass {
 public:
  /// Nothing is packed.
  Pass() = default;
  explicit Pass(std::shared_ptr<PackedRoom> room) : room_(std::move(room)) {}
  Pass(Pass&&) = default;
  Pass& operator=(Pass&&) = default;

  PackedRoom* room() const { return room_.get(); }

 private:
  std::shared_ptr<PackedRoom> room_;
};

/// Chooses what is packed and packs it. Where memory does not allow it, nothing is packed and ggml multiplies.
class Packs {
 public:
  /// Runs a function on every thread of the team.
  using Team = std::function<void(const std::function<void(Worker)>&)>;

  Packs(const model::Weights& weights, MemoryAccount& account, int threads, Packing packing, Team team);

  /// Packs what is to be resident, if it takes at most `spare` bytes. It is not tried again.
  void begin(std::size_t spare);
  /// Bytes that a pass of `rows` rows will take.
  std::size_t bytes(int rows) const;
  /// `spare` bytes may be taken, unless another pass has settled before whether there is room.
  Pass begin_pass(int rows, std::size_t spare);

  /// What a layer's matrices are to be looked up in during a pass; null: nothing is packed. Throws Interrupted.
  const PackedSet* of_layer(const Pass& pass, int layer);
  /// The same for steps.
  const PackedSet* of_step() const;

 private:
  int largest_layer() const;
  std::shared_ptr<PackedRoom> allocate(std::size_t spare, const std::vector<const ggml_tensor*>& room_for);
  void fill(PackedRoom& room, int layer);

  const model::Weights& weights_;
  MemoryAccount& account_;
  int threads_;
  Packing packing_;
  Team team_;
  std::shared_ptr<PackedRoom> resident_;
  std::weak_ptr<PackedRoom> room_;  ///< of the passes that there are
};

}  // namespace winnow::network
