// SPDX-License-Identifier: Apache-2.0
#include "network/packs.h"

#include <ggml-backend.h>
#include <ggml-cpu.h>
#include <ggml.h>

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "base/format.h"
#include "base/log.h"
#include "network/bf16_kernel.h"
#include "network/bf16_rows.h"
#include "winnow/error.h"

namespace winnow::network {

namespace {

/// Minimum number of rows of a pass for which packed weights are faster, packing included. Measured on one core of a
/// Sapphire Rapids machine (AMX, ggml 0.25 by clang 16; matrices of 768 x 256 to 1,536, a layer packed for 32 to 512
/// rows). The tables have a pass's time by ggml divided by its time with packed weights, packing included:
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
/// On one core of a Zen 4 machine (AVX-512-BF16, no AMX, ggml by GCC 12), all of the default model's layers:
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
/// Quantized weights that ggml multiplies by AMX tiles are a case of their own, and so are those that it multiplies row
/// by row.
int least_rows(const ggml_tensor& weight) {
  const bool tiles = weight.buffer != nullptr && std::string_view(ggml_backend_buffer_name(weight.buffer)) == "AMX";
  if (tiles && ggml_is_quantized(weight.type)) return 192;
  const bool row_by_row = weight.type == GGML_TYPE_Q4_1 || weight.type == GGML_TYPE_Q5_1;
  return row_by_row ? 32 : 96;
}

constexpr int kNever = 1 << 30;

/// The same for the rows of one expert. Measured with two threads of the Zen 4 machine on whole prompts, in the shape
/// of Granite 3.1 3B-A800M (40 experts of 512) and of two layers of gpt-oss-20b (32 of 2,880):
///
///     rows   q4_K_M   q8_0   mxfp4
///     16                     0.50
///     32                     0.72
///     51              1.35
///     64                     1.04
///     102    0.60     1.57
///     205    0.75     1.99
///     819    1.08
///
/// ggml has multi-row kernels for K and IQ quants. It multiplies other types row by row; repacked weights have a faster
/// kernel.
int least_rows_of_expert(const ggml_tensor& weight) {
  const bool has_tiles = ggml_get_type_traits_cpu(weight.type)->vec_dot_type == GGML_TYPE_Q8_K;
  const bool repacked = weight.buffer != nullptr && !ggml_backend_buffer_is_host(weight.buffer);
  if (has_tiles) return kNever;
  return repacked ? 64 : 32;
}

/// True if experts may add to the hidden states one after the other, after everything else of the layer.
bool adds_last(const model::LayerWeights& layer) {
  return layer.experts.post_norm.weight == nullptr && layer.ffn_post_norm.weight == nullptr && layer.scale == nullptr &&
         layer.embedding.out == nullptr;
}

/// Expert matrices of a layer; their first two dimensions give the size of a packed expert.
std::vector<const ggml_tensor*> experts_of(const model::LayerWeights& layer) {
  std::vector<const ggml_tensor*> out;
  for (const auto* const by : {&layer.experts.gate, &layer.experts.up, &layer.experts.down}) {
    if (by->of_many_rows != nullptr) out.push_back(by->of_many_rows);
  }
  return out;
}

}  // namespace

Packs::Packs(const model::Weights& weights, MemoryAccount& account, int threads, Packing packing, Team team)
    : weights_(weights),
      account_(account),
      threads_(threads),
      packing_(Bf16Kernel::available() ? packing : Packing::none),
      team_(std::move(team)) {}

std::size_t Packs::bytes(int rows) const {
  return with_packing(layer_bytes(rows)) + (packs_experts(rows) ? with_packing(largest_expert()) : 0);
}

std::size_t Packs::with_packing(std::size_t matrices) const {
  return matrices > 0 ? matrices + packing_bytes(threads_) : 0;
}

std::size_t Packs::layer_bytes(int rows) const {
  if (packing_ == Packing::none || (packing_ == Packing::by_rows && rows < least_rows(*weights_.layer(0).q.weight)))
    return 0;
  return PackedSet::bytes(packing_ == Packing::resident ? all_matrices(weights_)
                                                        : weights_.layer(largest_layer()).matrices());
}

void Packs::begin(std::size_t spare) {
  if (packing_ != Packing::resident) return;
  const auto all = all_matrices(weights_);
  resident_ = allocate(spare, PackedSet::bytes(all));
  if (resident_->set) fill(*resident_, PackedRoom::kAllLayers, -1, all);
}

Pass Packs::begin_pass(int rows, std::size_t spare) {
  auto room = resident_ ? resident_ : room_.lock();
  const std::size_t of_layer = layer_bytes(rows);
  if (!resident_ && of_layer == 0) room = nullptr;
  if (!room && of_layer > 0) {
    room_ = room = allocate(spare, of_layer);
    if (room->set) spare -= with_packing(of_layer);
  }
  if (!packs_experts(rows)) return {std::move(room), nullptr};
  auto experts = experts_.lock();
  if (!experts) experts_ = experts = allocate(spare, largest_expert());
  return {std::move(room), std::move(experts)};
}

const PackedSet* Packs::of_layer(const Pass& pass, int layer) {
  auto* const room = pass.room();
  if (room == nullptr || !room->set) return nullptr;
  if (room->layer != PackedRoom::kAllLayers && room->layer != layer)
    fill(*room, layer, -1, weights_.layer(layer).matrices());
  return &*room->set;
}

const PackedSet* Packs::places_of_layer(const Pass& pass, int layer) {
  auto* const room = pass.room();
  if (room == nullptr || !room->set) return nullptr;
  if (room->layer != PackedRoom::kAllLayers) {
    room->layer = -1;
    room->set->begin(weights_.layer(layer).matrices());
  }
  return &*room->set;
}

const PackedSet* Packs::places_of_expert(const Pass& pass, std::span<const ggml_tensor* const> matrices) {
  pass.experts()->layer = -1;
  pass.experts()->set->begin(matrices);
  return &*pass.experts()->set;
}

/// Depends only on the number of rows, through the average rows per expert. The first layer with experts decides for
/// all.
bool Packs::packs_experts(int rows) const {
  if (packing_ == Packing::none || largest_expert() == 0) return false;
  const auto& h = weights_.hparams();
  int layer = 0;
  while (h.layer(layer).n_expert == 0) ++layer;
  const std::int64_t least = least_rows_of_expert(*weights_.layer(layer).experts.up.of_many_rows);
  const auto& spec = h.layer(layer);
  return packing_ == Packing::layer || std::int64_t{rows} * spec.n_expert_used >= least * spec.n_expert;
}

bool Packs::packs_experts(const Pass& pass, int layer) const {
  const auto& w = weights_.layer(layer);
  return pass.experts() != nullptr && pass.experts()->set && w.experts.router.weight != nullptr && adds_last(w);
}

const PackedSet* Packs::of_expert(const Pass& pass, int layer, int expert, std::span<const ggml_tensor* const> matrices,
                                  int rows) {
  if (packing_ != Packing::layer && rows < least_rows_of_expert(*matrices.front())) return nullptr;
  auto& room = *pass.experts();
  if (room.layer != layer || room.expert != expert) fill(room, layer, expert, matrices);
  return &*room.set;
}

const PackedSet* Packs::of_step() const { return resident_ && resident_->set ? &*resident_->set : nullptr; }

std::shared_ptr<PackedRoom> Packs::allocate(std::size_t spare, std::size_t bytes) {
  auto out = std::make_shared<PackedRoom>();
  try {
    if (with_packing(bytes) <= spare) out->set.emplace(weights_, account_, bytes, threads_);
  } catch (const MemoryError&) {
    out->set.reset();
  }
  if (!out->set)
    log().info("not enough memory for {} of packed weights: reading prompts will be slower", format_bytes(bytes));
  return out;
}

void Packs::fill(PackedRoom& room, int layer, int expert, std::span<const ggml_tensor* const> matrices) {
  room.layer = -1;  // invalid while the contents change
  room.set->begin(matrices);
  team_([&](Worker worker) { room.set->pack(worker); });
  room.layer = layer;
  room.expert = expert;
}

std::vector<const ggml_tensor*> all_matrices(const model::Weights& weights) {
  std::vector<const ggml_tensor*> out;
  for (int layer = 0; layer < weights.hparams().n_layer; ++layer) {
    for (const auto* const m : weights.layer(layer).matrices()) out.push_back(m);
  }
  out.push_back(weights.output().weight);
  return out;
}

/// The layer whose packed matrices take the most bytes; the first of equals.
int Packs::largest_layer() const {
  int largest = 0;
  for (int layer = 1; layer < weights_.hparams().n_layer; ++layer) {
    if (PackedSet::bytes(weights_.layer(layer).matrices()) > PackedSet::bytes(weights_.layer(largest).matrices()))
      largest = layer;
  }
  return largest;
}

/// Bytes of the largest packed expert; 0: none may be packed.
std::size_t Packs::largest_expert() const {
  std::size_t most = 0;
  for (int layer = 0; layer < weights_.hparams().n_layer; ++layer) {
    const auto& w = weights_.layer(layer);
    if (adds_last(w)) most = std::max(most, PackedSet::bytes(experts_of(w)));
  }
  return most;
}

}  // namespace winnow::network
