// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/counted.h"
#include "cli/inspect/inspect.h"

namespace winnow::cli {

namespace {

bool are_equal(const std::vector<LayerInfo>& layers) {
  return std::all_of(layers.begin(), layers.end(), [&](const LayerInfo& layer) { return layer == layers.front(); });
}

}  // namespace

std::string heads_of(std::vector<LayerInfo> layers, const std::string& equal) {
  for (auto& layer : layers) layer.window = 0;
  if (are_equal(layers)) return equal;
  std::string out;
  for (auto layer = layers.begin(); layer != layers.end(); ++layer) {
    if (std::find(layers.begin(), layer, *layer) != layer) continue;
    const auto count = std::count(layers.begin(), layers.end(), *layer);
    out += fmt::format("{}{} of {} query heads on {} KV heads of {} dimensions", out.empty() ? "" : ", ",
                       counted(count, "layer"), layer->n_head, layer->n_head_kv, layer->head_dim);
  }
  return out;
}

void add_layers(nlohmann::ordered_json& to, const std::vector<LayerInfo>& layers) {
  if (are_equal(layers)) return;
  for (const auto& layer : layers)
    to["layers"].push_back({{"n_head", layer.n_head},
                            {"n_head_kv", layer.n_head_kv},
                            {"head_dim", layer.head_dim},
                            {"window", layer.window}});
}

}  // namespace winnow::cli
