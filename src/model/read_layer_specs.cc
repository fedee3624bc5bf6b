// SPDX-License-Identifier: Apache-2.0
#include "model/read_layer_specs.h"

#include <spdlog/fmt/fmt.h>

#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

#include "base/printable.h"
#include "winnow/error.h"

namespace winnow::model {

namespace {

// Bounds far beyond any real network, so that products of them cannot overflow.
constexpr int kMostWidth = 1 << 20;
constexpr int kMostHeads = 4096;
constexpr int kMostHeadDim = 256;  // what attention's kernels are tested with

/// 1 / factor, from the file or from what the user says against it.
float freq_scale(const GgufKeys& keys, const std::string& arch, const ModelOptions& options) {
  if (!options.rope_scaling.empty()) {
    const std::string_view text = options.rope_scaling;
    constexpr std::string_view kLinear = "linear:";
    float factor = 1;
    if (text == "none") return 1;
    if (text.starts_with(kLinear)) {
      const auto digits = text.substr(kLinear.size());
      const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), factor);
      if (error == std::errc() && end == digits.data() + digits.size() && std::isfinite(1 / factor) && factor > 0)
        return 1 / factor;
    }
    throw UsageError(fmt::format("RoPE scaling '{}' is not supported: use none or linear:FACTOR", text));
  }
  const auto type = keys.text(arch + ".rope.scaling.type").value_or("linear");
  constexpr double kLargestFactor = 1e6;
  auto factor = keys.number(arch + ".rope.scaling.factor", 0, kLargestFactor);
  if (!factor) factor = keys.number(arch + ".rope.scale_linear", 0, kLargestFactor);
  if (type == "none") return 1;
  if (type != "linear") {
    throw ModelError(
        fmt::format("{}: RoPE scaling '{}' is not supported (none and linear are; --rope-scaling overrides the file)",
                    keys.path(), brief(type)));
  }
  if (!factor || *factor == 0) return 1;
  if (*factor < 1 / kLargestFactor)
    throw ModelError(fmt::format("{}: {}.rope.scaling.factor is {:g}, expected {:g} to {:g}", keys.path(), arch,
                                 *factor, 1 / kLargestFactor, kLargestFactor));
  return static_cast<float>(1 / *factor);
}

std::vector<int> required(const GgufKeys& keys, const std::string& key, int layers, int most) {
  auto found = keys.integers(key, layers, 1, most);
  if (!found) throw ModelError(fmt::format("{}: key {} is missing", keys.path(), key));
  return *found;
}

/// The key of layer i, or what it is where the key is absent.
int of(const std::optional<std::vector<int>>& values, std::size_t i, int otherwise) {
  return values ? (*values)[i] : otherwise;
}

void check_heads(const LayerSpec& s, int value_dim, const std::string& path) {
  if (s.n_head_kv > s.n_head || s.n_head % s.n_head_kv != 0)
    throw ModelError(fmt::format("{}: {} query heads cannot share {} KV heads", path, s.n_head, s.n_head_kv));
  if (value_dim != s.head_dim) {
    throw ModelError(fmt::format("{}: keys of {} and values of {} dimensions: different lengths are not supported",
                                 path, s.head_dim, value_dim));
  }
  if (s.head_dim < 1 || s.head_dim > kMostHeadDim)
    throw ModelError(
        fmt::format("{}: the head dimension is {}, supported are 1 to {}", path, s.head_dim, kMostHeadDim));
}

void read_heads(const GgufKeys& keys, const Network& network, std::vector<LayerSpec>& specs) {
  const std::string prefix = network.arch + ".attention.";
  const int layers = network.n_layer;
  const auto heads = required(keys, prefix + "head_count", layers, kMostHeads);
  const auto kv_heads = keys.integers(prefix + "head_count_kv", layers, 1, kMostHeads);
  const auto key_dims = keys.integers(prefix + "key_length", layers, 1, kMostWidth);
  const auto value_dims = keys.integers(prefix + "value_length", layers, 1, kMostWidth);
  for (std::size_t i = 0; i < specs.size(); ++i) {
    auto& s = specs[i];
    s.n_head = heads[i];
    s.n_head_kv = of(kv_heads, i, s.n_head);
    s.head_dim = of(key_dims, i, network.n_embd / s.n_head);
    check_heads(s, of(value_dims, i, s.head_dim), keys.path());
    s.attention_scale = 1.0F / std::sqrt(static_cast<float>(s.head_dim));
  }
}

/// Fills in what ggml rotates by, and the same as frequencies.
void set_rope(LayerSpec& s, int rotated_dims, const std::string& path, const std::string& arch) {
  if (rotated_dims < 2 || rotated_dims > s.head_dim || rotated_dims % 2 != 0) {
    throw ModelError(fmt::format("{}: {}.rope.dimension_count is {}, expected an even number from 2 to {}", path, arch,
                                 rotated_dims, s.head_dim));
  }
  for (int i = 0; i < rotated_dims / 2; ++i) {
    const double frequency =
        s.rope_freq_scale * std::pow(static_cast<double>(s.rope_freq_base), -2.0 * i / rotated_dims);
    s.rope.frequency.push_back(static_cast<float>(frequency));
  }
}

void read_rope(const GgufKeys& keys, const Network& network, const ModelOptions& options,
               std::vector<LayerSpec>& specs) {
  const std::string prefix = network.arch + ".rope.";
  const auto dims = keys.integers(prefix + "dimension_count", network.n_layer, 0, kMostWidth);
  if (options.rope_freq_base < 0 || !std::isfinite(options.rope_freq_base))
    throw UsageError(fmt::format("the RoPE frequency base is {}: it must be above 0", options.rope_freq_base));
  const auto bases = keys.numbers(prefix + "freq_base", network.n_layer, 1e-6, 1e30);
  const float scale = freq_scale(keys, network.arch, options);
  for (std::size_t i = 0; i < specs.size(); ++i) {
    auto& s = specs[i];
    if (bases) s.rope_freq_base = static_cast<float>((*bases)[i]);
    if (options.rope_freq_base > 0) s.rope_freq_base = options.rope_freq_base;
    s.rope_freq_scale = scale;
    s.rope.pairing = network.pairing;
    set_rope(s, of(dims, i, s.head_dim), keys.path(), network.arch);
  }
}

}  // namespace

std::vector<LayerSpec> read_layer_specs(const GgufKeys& keys, const Network& network, const ModelOptions& options) {
  std::vector<LayerSpec> specs(network.n_layer);
  const auto widths = required(keys, network.arch + ".feed_forward_length", network.n_layer, 1 << 22);
  for (std::size_t i = 0; i < specs.size(); ++i) specs[i].n_ff = widths[i];
  read_heads(keys, network, specs);
  read_rope(keys, network, options, specs);
  return specs;
}

}  // namespace winnow::model
