// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
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

/// Memory for packed matrices, and which are in it: those of a layer that all rows are multiplied by, or those of one
/// of its experts.
struct PackedRoom {
  std::optional<PackedSet> set;  ///< none: there was no room
  int layer = -1;                ///< kAllLayers: all; negative: none
  int expert = -1;
  static constexpr int kAllLayers = 1 << 30;
};

/// Rows on their way through the layers: whether their products are on packed matrices is settled when the pass begins.
/// Passes may take turns; they share the memory, which lives as long as any of them. Move-only.
class Pass {
 public:
  /// Nothing is packed.
  Pass() = default;
  Pass(std::shared_ptr<PackedRoom> room, std::shared_ptr<PackedRoom> experts)
      : room_(std::move(room)), experts_(std::move(experts)) {}
  Pass(Pass&&) = default;
  Pass& operator=(Pass&&) = default;

  PackedRoom* room() const { return room_.get(); }
  /// Null, or without a set: experts are not packed.
  PackedRoom* experts() const { return experts_.get(); }

 private:
  std::shared_ptr<PackedRoom> room_;
  std::shared_ptr<PackedRoom> experts_;
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
  /// Where such matrices of a layer would be, for the size of products: what is packed in a pass's room is lost.
  const PackedSet* places_of_layer(const Pass& pass, int layer);
  /// The same of an expert. REQUIRES: packs_experts(pass, layer).
  const PackedSet* places_of_expert(const Pass& pass, std::span<const ggml_tensor* const> matrices);

  /// Whether any matrix may be packed.
  bool packs_any() const { return packing_ != Packing::none; }

  /// Whether passes of so many rows have experts that are packed one at a time, if there is room.
  bool packs_experts(int rows) const;
  /// Whether this pass packs those of a layer.
  bool packs_experts(const Pass& pass, int layer) const;
  /// What the matrices of an expert with so many rows are to be looked up in; null: they are not packed. Throws
  /// Interrupted. REQUIRES: packs_experts(pass, layer).
  const PackedSet* of_expert(const Pass& pass, int layer, int expert, std::span<const ggml_tensor* const> matrices,
                             int rows);

 private:
  int largest_layer() const;
  std::size_t largest_expert() const;
  std::size_t layer_bytes(int rows) const;
  /// Bytes of so many of packed matrices, with the work space in which they are packed.
  std::size_t with_packing(std::size_t matrices) const;
  std::shared_ptr<PackedRoom> allocate(std::size_t spare, std::size_t bytes);
  void fill(PackedRoom& room, int layer, int expert, std::span<const ggml_tensor* const> matrices);

  const model::Weights& weights_;
  MemoryAccount& account_;
  int threads_;
  Packing packing_;
  Team team_;
  std::shared_ptr<PackedRoom> resident_;
  std::weak_ptr<PackedRoom> room_;     ///< of the passes that there are
  std::weak_ptr<PackedRoom> experts_;  ///< the same, of experts
};

}  // namespace winnow::network
