// SPDX-License-Identifier: Apache-2.0
#include "network/packs.h"

#include <ggml-backend.h>
#include <ggml.h>

#include <string_view>

#include "base/format.h"
#include "base/log.h"
#include "network/bf16_kernel.h"
#include "winnow/error.h"

namespace winnow::network {

namespace {

/// The least rows of a pass for which packed weights are faster, packing included. Measured on one core of a Sapphire
/// Rapids machine (AMX, ggml 0.25 by clang 16; matrices of 768 x 256 to 1,536, a layer packed for 32 to 512 rows, the
/// time of a pass by ggml over that with packing):
///
///     rows     q4_1   q4_K   q6_K   q3_K   f16    bf16   f32    q5_0
///     64       0.56   0.43   0.77   0.61   1.40   1.76   0.85   1.31
///     128      0.96   0.73   1.23   0.67   2.14   1.58   1.94   1.98
///     256      1.25   1.14   1.86   1.44   2.55   3.88   2.96   4.10
///     512      1.64   1.68   2.22   2.05   4.35   4.75   3.38   5.37
///     step 8   0.59   0.73   0.85   1.64   1.86   1.83   2.23   1.28
///     step 16  0.78   0.94   1.01   1.69   2.94   2.59   3.03   2.42
///     step 32  1.10   1.33   1.12   1.95   3.52   3.87   3.52   3.62
///
/// And on one core of a Zen 4 machine (AVX-512-BF16, no AMX, ggml by GCC 12), all of the default model's layers:
///
///     rows     q4_1   q5_1   q8_0   q4_0   q5_0   f16    bf16   f32
///     16       0.84   0.70   0.70   0.30   0.37   0.32   0.69   1.11
///     32       1.31   1.15   0.90   0.46   0.43   0.49   0.80   1.48
///     64       2.03   1.88   1.20   0.70   0.88   0.80   0.83   1.70
///     128      3.03   2.96   1.73   0.95   1.12   1.16   1.08   2.03
///     step 4   1.06   0.93   0.98   1.00   1.04   1.04   0.95   0.99
///     step 8   2.08   2.36   1.50   1.06   1.13   1.68   1.35   2.16
///     step 16  3.25   4.09   1.42   1.30   1.88   2.28   1.65   2.91
///
/// Quantized weights that ggml multiplies by tiles of AMX stand apart, and those that it multiplies row by row.
int least_rows(const ggml_tensor& weight) {
  const bool tiles = weight.buffer != nullptr && std::string_view(ggml_backend_buffer_name(weight.buffer)) == "AMX";
  if (tiles && ggml_is_quantized(weight.type)) return 192;
  const bool row_by_row = weight.type == GGML_TYPE_Q4_1 || weight.type == GGML_TYPE_Q5_1;
  return row_by_row ? 32 : 96;
}

}  // namespace

Packs::Packs(const model::Weights& weights, MemoryAccount& account, int threads, Packing packing, Team team)
    : weights_(weights),
      account_(account),
      threads_(threads),
      packing_(Bf16Kernel::available() ? packing : Packing::none),
      team_(std::move(team)) {}

std::size_t Packs::bytes(int rows) const {
  if (packing_ == Packing::none || (packing_ == Packing::by_rows && rows < least_rows(*weights_.layer(0).q.weight)))
    return 0;
  return PackedSet::bytes(packing_ == Packing::resident ? all_matrices(weights_)
                                                        : weights_.layer(largest_layer()).matrices());
}

void Packs::begin(std::size_t spare) {
  if (packing_ != Packing::resident) return;
  resident_ = allocate(spare, all_matrices(weights_));
  if (resident_->set) fill(*resident_, PackedRoom::kAllLayers);
}

Pass Packs::begin_pass(int rows, std::size_t spare) {
  if (resident_) return Pass(resident_);
  if (bytes(rows) == 0) return {};
  auto room = room_.lock();
  if (!room) room_ = room = allocate(spare, weights_.layer(largest_layer()).matrices());
  return Pass(std::move(room));
}

const PackedSet* Packs::of_layer(const Pass& pass, int layer) {
  auto* const room = pass.room();
  if (room == nullptr || !room->set) return nullptr;
  if (room->layer != PackedRoom::kAllLayers && room->layer != layer) fill(*room, layer);
  return &*room->set;
}

const PackedSet* Packs::of_step() const { return resident_ && resident_->set ? &*resident_->set : nullptr; }

std::shared_ptr<PackedRoom> Packs::allocate(std::size_t spare, const std::vector<const ggml_tensor*>& room_for) {
  const std::size_t bytes = PackedSet::bytes(room_for);
  auto out = std::make_shared<PackedRoom>();
  try {
    if (bytes <= spare) out->set.emplace(weights_, account_, bytes, threads_);
  } catch (const MemoryError&) {
    out->set.reset();
  }
  if (!out->set) log().info("no room for {} of packed weights: prompts are read more slowly", format_bytes(bytes));
  return out;
}

void Packs::fill(PackedRoom& room, int layer) {
  room.layer = -1;  // while it is neither the old one nor the new one
  room.set->begin(layer == PackedRoom::kAllLayers ? all_matrices(weights_) : weights_.layer(layer).matrices());
  team_([&](Worker worker) { room.set->pack(worker); });
  room.layer = layer;
}

std::vector<const ggml_tensor*> all_matrices(const model::Weights& weights) {
  std::vector<const ggml_tensor*> out;
  for (int layer = 0; layer < weights.hparams().n_layer; ++layer) {
    for (const auto* const m : weights.layer(layer).matrices()) out.push_back(m);
  }
  out.push_back(weights.output().weight);
  return out;
}

/// The one whose packed matrices take the most bytes; of equals the first.
int Packs::largest_layer() const {
  int largest = 0;
  for (int layer = 1; layer < weights_.hparams().n_layer; ++layer) {
    if (PackedSet::bytes(weights_.layer(layer).matrices()) > PackedSet::bytes(weights_.layer(largest).matrices()))
      largest = layer;
  }
  return largest;
}

}  // namespace winnow::network
