// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

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
  resident,  ///< all layers, which stay packed: in every pass and in steps of many rows
};

/// Chooses what is packed and packs it. Where memory does not allow it, nothing is packed and ggml multiplies.
class Packs {
 public:
  /// Runs a function on every thread of the team.
  using Team = std::function<void(const std::function<void(Worker)>&)>;

  Packs(const model::Weights& weights, MemoryAccount& account, int threads, Packing packing, Team team);

  /// Bytes that a pass of `rows` rows will take.
  std::size_t bytes(int rows) const;
  /// `spare` bytes may be taken.
  void begin_pass(int rows, std::size_t spare);
  void end_pass();

  /// What a layer's matrices are to be looked up in during a pass; null: nothing is packed. Throws Interrupted.
  const PackedSet* of_layer(int layer);
  /// The same for steps.
  const PackedSet* of_step(int rows);

 private:
  std::vector<const ggml_tensor*> matrices_of(int layer) const;
  int largest_layer() const;
  std::vector<const ggml_tensor*> all_matrices() const;
  void pack_all(std::size_t spare);
  bool allocate(std::size_t spare, const std::vector<const ggml_tensor*>& room_for);
  void fill(const std::vector<const ggml_tensor*>& matrices);

  const model::Weights& weights_;
  MemoryAccount& account_;
  int threads_;
  Packing packing_;
  Team team_;
  std::optional<PackedSet> set_;
  int layer_ = -1;        ///< that is packed; all: resident
  bool refused_ = false;  ///< resident weights have found no room
  static constexpr int kAll = 1 << 30;
};

}  // namespace winnow::network
