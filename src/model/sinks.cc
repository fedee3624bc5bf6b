// SPDX-License-Identifier: Apache-2.0
#include "model/sinks.h"

#include <ggml.h>
#include <spdlog/fmt/fmt.h>

#include <cmath>

#include "model/tensor_loader.h"
#include "winnow/error.h"

namespace winnow::model {

void read_sinks(TensorLoader& loader, Hparams& hparams, const std::string& path) {
  if (!hparams.architecture->sinks) return;
  for (int layer = 0; layer < hparams.n_layer; ++layer) {
    const std::string name = fmt::format("blk.{}.attn_sinks.weight", layer);
    const int heads = hparams.layer(layer).n_head;
    const auto* const logits = static_cast<const float*>(loader.mapped_f32(name, {heads})->data);
    for (int head = 0; head < heads; ++head) {
      if (!std::isfinite(logits[head]))
        throw ModelError(fmt::format("{}: tensor {} holds {} for head {}", path, name, logits[head], head));
    }
    hparams.sink_logits.emplace_back(logits, logits + heads);
  }
}

}  // namespace winnow::model
