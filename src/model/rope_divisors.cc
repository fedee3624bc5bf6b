// SPDX-License-Identifier: Apache-2.0
#include "model/rope_divisors.h"

#include <ggml.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>

#include "base/as_size.h"
#include "base/check_memory.h"
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
  if (one) divide_all(hparams, *loader.mapped(kOfAll, {pairs}), path);
  if (!two) return;
  const auto* const of_long = loader.mapped(kOfLong, {pairs});
  const auto* const of_short = loader.mapped(kOfShort, {pairs});
  divide_all(hparams, choose(hparams) == Factors::of_long_texts ? *of_long : *of_short, path);
}

RopeDivisors::RopeDivisors(const Hparams& hparams) {
  std::size_t bytes = 0;
  for (const auto& kind : hparams.kinds)
    bytes += ggml_tensor_overhead() + GGML_MEM_ALIGN + kind.rope.frequency.size() * sizeof(float);
  check_memory(bytes, "the divisors of RoPE's frequencies");  // ggml_init() does not report a failed allocation
  context_.reset(ggml_init({bytes, nullptr, false}));
  for (const auto& kind : hparams.kinds) {
    tensors_.push_back(nullptr);
    std::vector<float> divisors;
    const Rope unscaled = scaled_rope(kind.rope.pairing, kind.rope_base, kind.rope.rotated_dims(), {});
    for (std::size_t i = 0; i < unscaled.frequency.size(); ++i)
      divisors.push_back(unscaled.frequency[i] / kind.rope.frequency[i]);
    if (std::all_of(divisors.begin(), divisors.end(), [](float d) { return d == 1; })) continue;
    tensors_.back() = ggml_new_tensor_1d(context_.get(), GGML_TYPE_F32, static_cast<std::int64_t>(divisors.size()));
    std::copy(divisors.begin(), divisors.end(), ggml_get_data_f32(tensors_.back()));
  }
}

}  // namespace winnow::model
