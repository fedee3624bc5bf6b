// SPDX-License-Identifier: Apache-2.0
#include "model/read_layer_specs.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/as_size.h"
#include "winnow/error.h"

namespace winnow::model {

namespace {

// Bounds far beyond any real network, so that products cannot overflow.
constexpr int kMostHeads = 4096;
constexpr int kMostHeadDim = 512;  // the largest size for which attention's kernels are tested
constexpr double kMostScale = 1e6;
constexpr int kMostFeedForward = 1 << 22;
constexpr double kLeastBase = 1e-6;
constexpr double kMostBase = 1e30;

using Rotation = Architecture::Windows::Rotation;

std::vector<int> required(const GgufKeys& keys, const std::string& key, int layers, int most) {
  auto found = keys.integers(key, layers, 1, most);
  if (!found) throw ModelError(fmt::format("{}: key {} is missing", keys.path(), key));
  return *found;
}

/// Value for layer i, or the default if the key is absent.
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
    throw ModelError(fmt::format("{}: the head dimension is {}, expected 1 to {}", path, s.head_dim, kMostHeadDim));
}

/// Values of a key for each layer. Layers with windows use NAME_swa if they have heads of their own; 0: no key.
std::vector<int> of_heads(const GgufKeys& keys, const Network& network, const std::string& key,
                          const std::vector<LayerSpec>& specs) {
  const auto said = keys.integers(key, network.n_layer, 0, kMostWidth);
  const bool own = network.architecture.windows.own_heads;
  const auto of_windows = own ? keys.integer(key + "_swa", 0, kMostWidth) : std::nullopt;
  std::vector<int> out;
  for (std::size_t i = 0; i < specs.size(); ++i)
    out.push_back(own && specs[i].window > 0 ? of_windows.value_or(0) : of(said, i, 0));
  return out;
}

/// REQUIRES: windows have been read.
void read_heads(const GgufKeys& keys, const Network& network, std::vector<LayerSpec>& specs) {
  const std::string prefix = std::string(network.architecture.name) + ".attention.";
  const int layers = network.n_layer;
  const auto heads = required(keys, prefix + "head_count", layers, kMostHeads);
  const auto kv_heads = keys.integers(prefix + "head_count_kv", layers, 1, kMostHeads);
  const auto key_dims = of_heads(keys, network, prefix + "key_length", specs);
  const auto value_dims = of_heads(keys, network, prefix + "value_length", specs);
  const double scale =
      network.architecture.attention_scale ? keys.number(prefix + "scale", 0, kMostScale).value_or(0) : 0;
  const bool of_width = network.architecture.width_scale_layers == layers;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    auto& s = specs[i];
    s.n_head = heads[i];
    s.n_head_kv = of(kv_heads, i, s.n_head);
    s.head_dim = key_dims[i] != 0 ? key_dims[i] : network.n_embd / s.n_head;
    check_heads(s, value_dims[i] != 0 ? value_dims[i] : s.head_dim, keys.path());
    const int scaled_by = of_width ? network.n_embd / s.n_head : s.head_dim;
    s.attention_scale = scale != 0 ? static_cast<float>(scale) : 1.0F / std::sqrt(static_cast<float>(scaled_by));
    if (network.architecture.unscaled_attention) s.attention_scale = 1;
  }
}

/// Reads how all layers treat queries and q·k, except the scale.
void read_attention(const GgufKeys& keys, const Network& network, std::vector<LayerSpec>& specs) {
  const Architecture& a = network.architecture;
  const std::string arch(a.name);
  const float cap = soft_cap(keys, arch + ".attn_logit_softcapping", a.attention_cap);
  Temperature temperature;
  if (a.temperature) {
    const auto slope = keys.number(arch + ".attention.temperature_scale", 0, kMostScale);
    temperature = {static_cast<float>(slope.value_or(0)), network.rope_scaling.file_context};
  }
  for (auto& s : specs) {
    s.attention_cap = cap;
    s.temperature = temperature;
  }
}

/// Layers with windows, from the file or the architecture. As in libllama, a number n means all layers but every n-th.
std::vector<bool> windowed_layers(const GgufKeys& keys, const Network& network) {
  const std::string key = std::string(network.architecture.name) + ".attention.sliding_window_pattern";
  const int layers = network.n_layer;
  if (keys.is_array(key)) {
    const auto given = keys.integers(key, layers, 0, 1);
    return {given->begin(), given->end()};
  }
  const int every = keys.integer(key, 0, kMostWidth).value_or(network.architecture.windows.every);
  std::vector<bool> out;
  for (int layer = 0; layer < layers; ++layer) out.push_back(every == 0 || layer % every < every - 1);
  return out;
}

void read_windows(const GgufKeys& keys, const Network& network, std::vector<LayerSpec>& specs) {
  const auto& windows = network.architecture.windows;
  if (!windows.possible()) return;
  const std::string key = std::string(network.architecture.name) + ".attention.sliding_window";
  constexpr int kMostWindow = 1 << 30;
  const int least = windows.otherwise > 0 ? 1 : 0;
  const auto window = windows.required ? keys.required(key, 1, kMostWindow)
                                       : keys.integer(key, least, kMostWindow).value_or(windows.otherwise);
  if (windows.listed && !keys.is_array(key + "_pattern"))
    throw ModelError(
        fmt::format("{}: key {}_pattern is missing, which says which layers have a sliding window", keys.path(), key));
  const auto have_one = windowed_layers(keys, network);
  if (windows.only_layers != 0 && windows.only_layers != network.n_layer) return;
  for (std::size_t i = 0; i < specs.size(); ++i) specs[i].window = have_one[i] ? window : 0;
}

void set_rope(LayerSpec& s, int rotated_dims, const RopeScaling& scaling, const Network& network,
              const GgufKeys& keys) {
  if (rotated_dims < 2 || rotated_dims > s.head_dim || rotated_dims % 2 != 0) {
    throw ModelError(fmt::format("{}: {}.rope.dimension_count is {}, expected an even number from 2 to {}", keys.path(),
                                 network.architecture.name, rotated_dims, s.head_dim));
  }
  s.rope = scaled_rope(network.architecture.pairing, s.rope_base, rotated_dims, scaling);
  if (!std::all_of(s.rope.frequency.begin(), s.rope.frequency.end(), [](float f) { return std::isfinite(f); }))
    throw ModelError(
        fmt::format("{}: the RoPE base {:g} gives frequencies that are not finite", keys.path(), s.rope_base));
}

bool has_windows(const std::vector<LayerSpec>& specs) {
  return std::any_of(specs.begin(), specs.end(), [](const LayerSpec& s) { return s.window > 0; });
}

/// The base that results from the file's `base` and alpha (NTK-aware scaling of all pairs at once). A user's base is
/// used as it is.
float widened_base(const GgufKeys& keys, const Network& network, double base, int head_dim) {
  constexpr double kMostAlpha = 1e6;
  if (!network.architecture.alpha_base) return static_cast<float>(base);
  const std::string key = std::string(network.architecture.name) + ".rope.scaling.alpha";
  const double alpha = keys.number(key, 0, kMostAlpha).value_or(0);
  if (alpha == 0) return static_cast<float>(base);
  const double widened = base * std::pow(alpha, head_dim / (head_dim - 2.0));
  if (!(widened >= kLeastBase && widened <= kMostBase)) {
    throw ModelError(fmt::format("{}: key {} is {:g}, which gives heads of {} dimensions a RoPE base of {:g}",
                                 keys.path(), key, alpha, head_dim, widened));
  }
  return static_cast<float>(widened);
}

/// True for each layer without rotation.
std::vector<bool> unrotated_layers(const GgufKeys& keys, const Network& network) {
  const Architecture& a = network.architecture;
  const std::string arch(a.name);
  const auto rotate =
      a.listed_rope ? keys.integers(arch + ".attention.rope_pattern", network.n_layer, 0, 1) : std::nullopt;
  const bool all = a.finetuned_rope && !keys.flag(arch + ".rope.scaling.finetuned").value_or(true);
  std::vector<bool> out;
  for (int layer = 0; layer < network.n_layer; ++layer) {
    const bool by_place = a.unrotated_every > 0 && (layer + 1) % a.unrotated_every == 0;
    out.push_back(all || by_place || of(rotate, as_size(layer), 1) == 0);
  }
  return out;
}

/// Base of layers with windows; 0: that of the others.
double base_of_windows(const GgufKeys& keys, const Network& network) {
  const Rotation rotation = network.architecture.windows.rotation;
  if (rotation != Rotation::own_base && rotation != Rotation::scaled) return 0;
  const std::string key = std::string(network.architecture.name) + ".rope.freq_base_swa";
  return keys.number(key, kLeastBase, kMostBase).value_or(rotation == Rotation::own_base ? 10000 : 0);
}

void read_rope(const GgufKeys& keys, const Network& network, const ModelOptions& options,
               std::vector<LayerSpec>& specs) {
  const std::string prefix = std::string(network.architecture.name) + ".rope.";
  const auto dims = of_heads(keys, network, prefix + "dimension_count", specs);
  if (options.rope_freq_base < 0 || !std::isfinite(options.rope_freq_base))
    throw UsageError(fmt::format("the RoPE frequency base is {}: it must be above 0", options.rope_freq_base));
  const auto bases = keys.numbers(prefix + "freq_base", network.n_layer, kLeastBase, kMostBase);
  const Rotation of_windows = network.architecture.windows.rotation;
  const bool windows = has_windows(specs);
  const double own_base = base_of_windows(keys, network);
  const auto unrotated = unrotated_layers(keys, network);
  for (std::size_t i = 0; i < specs.size(); ++i) {
    auto& s = specs[i];
    const bool windowed = s.window > 0;
    s.rope_base = widened_base(keys, network, bases ? (*bases)[i] : s.rope_base, s.head_dim);
    if (options.rope_freq_base > 0) s.rope_base = options.rope_freq_base;
    if (windowed && own_base > 0) s.rope_base = static_cast<float>(own_base);
    s.rope.pairing = network.architecture.pairing;
    if (windows && !windowed && of_windows == Rotation::windows_only) continue;
    const bool unscaled = windowed && (of_windows == Rotation::unscaled || of_windows == Rotation::own_base);
    if (!unrotated[i])
      set_rope(s, dims[i] != 0 ? dims[i] : s.head_dim, unscaled ? RopeScaling{} : network.rope_scaling, network, keys);
  }
}

/// Experts of a layer; 0: none.
int read_expert_count(const GgufKeys& keys, const Architecture& a) {
  const std::string key = std::string(a.name) + ".expert_count";
  switch (a.experts.presence) {
    case Experts::Presence::never:
      return 0;
    case Experts::Presence::where_counted:
      return keys.integer(key, 0, kMostExperts).value_or(0);
    case Experts::Presence::always:
      return keys.required(key, 1, kMostExperts);
  }
  return 0;
}

/// Widths of the shared expert in the file.
struct SharedWidths {
  std::optional<std::vector<int>> said;
  int count = 0;  ///< width as a number of other experts

  static SharedWidths read(const GgufKeys& keys, const Architecture& a, int layers) {
    using Shared = Experts::Shared;
    const std::string prefix = std::string(a.name) + ".expert_shared_";
    if (a.experts.shared == Shared::none || a.experts.shared == Shared::feed_forward) return {};
    if (a.experts.shared == Shared::counted) return {{}, keys.required(prefix + "count", 0, kMostExperts)};
    return {keys.integers(prefix + "feed_forward_length", layers, 0, kMostFeedForward)};
  }

  /// 0: no shared expert. By default, a gated one is as wide as the feed-forward block.
  int of_layer(std::size_t i, const LayerSpec& s, const Architecture& a, const std::string& path) const {
    if (count > kMostFeedForward / s.n_ff_expert) {
      throw ModelError(
          fmt::format("{}: {} shared experts of width {} are together wider than the largest supported width, {}", path,
                      count, s.n_ff_expert, kMostFeedForward));
    }
    if (a.experts.shared == Experts::Shared::counted) return count * s.n_ff_expert;
    if (a.experts.shared == Experts::Shared::feed_forward) return s.n_ff;
    const int width = of(said, i, 0);
    return width == 0 && a.experts.shared == Experts::Shared::gated ? s.n_ff : width;
  }
};

void read_experts(const GgufKeys& keys, const Network& network, std::vector<LayerSpec>& specs) {
  const Architecture& a = network.architecture;
  const int count = read_expert_count(keys, a);
  if (count == 0) return;
  const std::string prefix = std::string(a.name) + ".expert_";
  keys.integer(prefix + "group_count", 0, 1);  // groups would limit the choice
  keys.integer(prefix + "group_used_count");   // irrelevant with one group
  const auto used = required(keys, prefix + "used_count", network.n_layer, count);
  const bool own_width = a.experts.width == Experts::Width::own;
  const auto widths =
      own_width ? keys.integers(prefix + "feed_forward_length", network.n_layer, 0, kMostFeedForward) : std::nullopt;
  const auto shared = SharedWidths::read(keys, a, network.n_layer);
  const int dense =
      a.experts.leading_dense
          ? keys.integer(std::string(a.name) + ".leading_dense_block_count", 0, network.n_layer).value_or(0)
          : 0;
  for (std::size_t i = as_size(dense); i < specs.size(); ++i) {
    auto& s = specs[i];
    s.n_expert = count;
    s.n_expert_used = used[i];
    s.n_ff_expert = of(widths, i, 0);
    if (s.n_ff_expert == 0) s.n_ff_expert = own_width ? s.n_ff / s.n_expert_used : s.n_ff;
    if (s.n_ff_expert == 0) {
      throw ModelError(
          fmt::format("{}: {} experts cannot share a feed-forward width of {}", keys.path(), s.n_expert_used, s.n_ff));
    }
    s.n_ff_shared = shared.of_layer(i, s, a, keys.path());
  }
}

}  // namespace

float soft_cap(const GgufKeys& keys, const std::string& key, const Architecture::Cap& cap) {
  if (!cap.possible) return 0;
  constexpr double kLeast = 1e-3;
  const double value = keys.number(key, 0, kMostScale).value_or(cap.otherwise);
  if (value == 0 || value >= kLeast) return static_cast<float>(value);
  throw ModelError(
      fmt::format("{}: {} is {:g}, expected 0 or {:g} to {:g}", keys.path(), key, value, kLeast, kMostScale));
}

std::vector<LayerSpec> read_layer_specs(const GgufKeys& keys, const Network& network, const ModelOptions& options) {
  std::vector<LayerSpec> specs(network.n_layer);
  const auto widths = required(keys, std::string(network.architecture.name) + ".feed_forward_length", network.n_layer,
                               kMostFeedForward);
  for (std::size_t i = 0; i < specs.size(); ++i) specs[i].n_ff = widths[i];
  read_experts(keys, network, specs);
  read_windows(keys, network, specs);
  read_heads(keys, network, specs);
  read_attention(keys, network, specs);
  read_rope(keys, network, options, specs);
  return specs;
}

}  // namespace winnow::model
