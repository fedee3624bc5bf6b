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
  by_rows,   ///< one layer at a time, in passes with enough rows
  layer,     ///< one layer at a time, in every pass
  resident,  ///< all layers, permanently: in every pass and every step
};

/// The matrices of all layers, and the output matrix.
std::vector<const ggml_tensor*> all_matrices(const model::Weights& weights);

/// Memory for packed matrices, and its contents: the matrices of a layer that all rows use, or those of one of its
/// experts.
struct PackedRoom {
  std::optional<PackedSet> set;  ///< empty: there was no room
  int layer = -1;                ///< kAllLayers: all; negative: none
  int expert = -1;
  static constexpr int kAllLayers = 1 << 30;
};

/// One pass of rows through the layers. Whether its products use packed matrices is decided when it begins. Passes may
/// take turns; they share the memory, which is freed with the last of them. Move-only.
class Pass {
 public:
  /// A pass without packed matrices.
  Pass() = default;
  Pass(std::shared_ptr<PackedRoom> room, std::shared_ptr<PackedRoom> experts)
      : room_(std::move(room)), experts_(std::move(experts)) {}
  Pass(Pass&&) = default;
  Pass& operator=(Pass&&) = default;

  PackedRoom* room() const { return room_.get(); }
  /// Null, or without a set, if experts are not packed.
  PackedRoom* experts() const { return experts_.get(); }

 private:
  std::shared_ptr<PackedRoom> room_;
  std::shared_ptr<PackedRoom> experts_;
};

/// Decides which matrices are packed, and packs them. Without enough memory nothing is packed, and ggml multiplies.
class Packs {
 public:
  /// Runs a function on every thread of the team.
  using Team = std::function<void(const std::function<void(Worker)>&)>;

  Packs(const model::Weights& weights, MemoryAccount& account, int threads, Packing packing, Team team);

  /// Packs the resident matrices if they take at most `spare` bytes. There is no second attempt.
  void begin(std::size_t spare);
  /// Bytes for a pass of `rows` rows.
  std::size_t bytes(int rows) const;
  /// Takes up to `spare` bytes, unless another pass has already decided whether there is room.
  Pass begin_pass(int rows, std::size_t spare);

  /// Packed matrices of a layer in a pass; null: nothing is packed. Throws Interrupted.
  const PackedSet* of_layer(const Pass& pass, int layer);
  /// The same for steps.
  const PackedSet* of_step() const;
  /// Places of a layer's packed matrices without contents, to size products. Discards the contents of the pass's room.
  const PackedSet* places_of_layer(const Pass& pass, int layer);
  /// The same for an expert. REQUIRES: packs_experts(pass, layer).
  const PackedSet* places_of_expert(const Pass& pass, std::span<const ggml_tensor* const> matrices);

  /// True if any matrix may be packed.
  bool packs_any() const { return packing_ != Packing::none; }

  /// True if passes of `rows` rows pack experts one at a time, given enough memory.
  bool packs_experts(int rows) const;
  /// True if this pass packs the experts of a layer.
  bool packs_experts(const Pass& pass, int layer) const;
  /// Packed matrices of an expert that `rows` rows use; null: not packed. Throws Interrupted. REQUIRES:
  /// packs_experts(pass, layer).
  const PackedSet* of_expert(const Pass& pass, int layer, int expert, std::span<const ggml_tensor* const> matrices,
                             int rows);

 private:
  int largest_layer() const;
  std::size_t largest_expert() const;
  std::size_t layer_bytes(int rows) const;
  /// Adds the work space for packing to the bytes of packed matrices.
  std::size_t with_packing(std::size_t matrices) const;
  std::shared_ptr<PackedRoom> allocate(std::size_t spare, std::size_t bytes);
  void fill(PackedRoom& room, int layer, int expert, std::span<const ggml_tensor* const> matrices);

  const model::Weights& weights_;
  MemoryAccount& account_;
  int threads_;
  Packing packing_;
  Team team_;
  std::shared_ptr<PackedRoom> resident_;
  std::weak_ptr<PackedRoom> room_;     ///< of the open passes
  std::weak_ptr<PackedRoom> experts_;  ///< the same for experts
};

}  // namespace winnow::network
