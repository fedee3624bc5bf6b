// SPDX-License-Identifier: Apache-2.0
#include "model/rope_divisors.h"

#include <ggml-alloc.h>
#include <ggml-backend.h>
#include <ggml.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/as_size.h"
#include "base/format.h"
#include "base/memory.h"
#include "model/tensor_loader.h"
#include "winnow/error.h"

namespace winnow::model {

namespace {

using Factors = RopeScaling::Factors;

constexpr const char* kOfAll = "rope_freqs.weight";
constexpr const char* kOfLong = "rope_factors_long.weight";
constexpr const char* kOfShort = "rope_factors_short.weight";

/// Like llama.cpp with the model's full context, unless the user chooses.
Factors choose(const Hparams& h) {
  const RopeScaling& scaling = h.rope_scaling;
  if (scaling.factors != Factors::by_context) return scaling.factors;
  return h.ctx_train > scaling.original_context ? Factors::of_long_texts : Factors::of_short_texts;
}

/// True if a file's factors apply to layers of this kind.
bool takes_factors(const Hparams& h, const LayerSpec& kind) {
  return h.architecture->rope_factors != Architecture::RopeFactors::of_globals || kind.window == 0;
}

/// Number of rotated pairs, which must be the same for all layers with factors.
std::int64_t pairs_of(const Hparams& h, const std::string& path) {
  std::int64_t pairs = 0;
  for (const auto& kind : h.kinds) {
    const auto own = takes_factors(h, kind) ? static_cast<std::int64_t>(kind.rope.frequency.size()) : 0;
    if (own != 0 && pairs != 0 && own != pairs)
      throw ModelError(fmt::format(
          "{}: one tensor of RoPE factors cannot serve layers that rotate {} pairs and {} pairs", path, own, pairs));
    pairs = std::max(pairs, own);
  }
  return pairs;
}

void divide_all(Hparams& h, const ggml_tensor& tensor, const std::string& path) {
  const auto* const factors = static_cast<const float*>(tensor.data);
  for (std::int64_t i = 0; i < tensor.ne[0]; ++i) {
    if (!(factors[i] > 0) || !std::isfinite(1 / factors[i]))
      throw ModelError(fmt::format("{}: tensor {} has the RoPE factor {}, expected a finite number above 0", path,
                                   ggml_get_name(&tensor), factors[i]));
  }
  for (auto& kind : h.kinds) {
    if (takes_factors(h, kind)) divide(kind.rope, factors);
  }
}

/// Empty: all are 1.
std::vector<float> divisors_of(const LayerSpec& kind) {
  std::vector<float> out;
  const Rope unscaled = scaled_rope(kind.rope.pairing, kind.rope_base, kind.rope.rotated_dims(), {});
  for (std::size_t i = 0; i < unscaled.frequency.size(); ++i)
    out.push_back(unscaled.frequency[i] / kind.rope.frequency[i]);
  if (std::all_of(out.begin(), out.end(), [](float d) { return d == 1; })) out.clear();
  return out;
}

}  // namespace

void apply_rope_factors(TensorLoader& loader, Hparams& hparams, const std::string& path) {
  using Allowed = Architecture::RopeFactors;
  const Allowed allowed = hparams.architecture->rope_factors;
  const bool two = loader.has(kOfLong) && allowed >= Allowed::long_and_short;
  if (!two && hparams.rope_scaling.factors != Factors::by_context)
    throw UsageError(
        fmt::format("{} has no RoPE factors for long and short texts: --rope-scaling longrope needs them", path));
  const bool required = allowed == Allowed::of_globals && hparams.n_global > 0;
  const bool one = required || (loader.has(kOfAll) && (allowed == Allowed::one || allowed == Allowed::any));
  if (!two && !one) return;
  const std::int64_t pairs = pairs_of(hparams, path);
  if (one) divide_all(hparams, *loader.in_file(kOfAll, {pairs}), path);
  if (!two) return;
  const auto* const of_long = loader.in_file(kOfLong, {pairs});
  const auto* const of_short = loader.in_file(kOfShort, {pairs});
  divide_all(hparams, choose(hparams) == Factors::of_long_texts ? *of_long : *of_short, path);
}

RopeDivisors::RopeDivisors(const Hparams& hparams, device::Device* device) {
  context_.reset(ggml_init({(hparams.kinds.size() + 1) * ggml_tensor_overhead(), nullptr, true}));
  std::vector<std::vector<float>> values;
  for (const auto& kind : hparams.kinds) {
    values.push_back(divisors_of(kind));
    const auto count = static_cast<std::int64_t>(values.back().size());
    tensors_.push_back(count == 0 ? nullptr : ggml_new_tensor_1d(context_.get(), GGML_TYPE_F32, count));
  }
  if (std::ranges::all_of(values, [](const auto& of_kind) { return of_kind.empty(); })) return;
  auto* const type = device == nullptr ? ggml_backend_cpu_buffer_type() : device->memory();
  ggml_backend_buffer_ptr buffer(ggml_backend_alloc_ctx_tensors_from_buft(context_.get(), type));
  if (buffer == nullptr) {
    throw MemoryError(fmt::format("cannot allocate the divisors of RoPE's frequencies ({} available)",
                                  format_bytes(device == nullptr ? available_memory() : device->available())),
                      0);
  }
  if (device == nullptr) {
    of_host_ = std::move(buffer);
  } else {
    of_device_ = device::DeviceMemory(*device, std::move(buffer));
  }
  for (std::size_t kind = 0; kind < values.size(); ++kind) {
    if (tensors_[kind] != nullptr)
      ggml_backend_tensor_set(tensors_[kind], values[kind].data(), 0, values[kind].size() * sizeof(float));
  }
}

}  // namespace winnow::model
