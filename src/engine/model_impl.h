// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "model/pooling.h"
#include "model/sampling_keys.h"
#include "model/vocab.h"
#include "model/weights.h"
#include "winnow/model.h"

namespace winnow {

struct Model::Impl {
  Impl(std::shared_ptr<const model::Weights> w, model::Vocab v, ModelInfo i, model::SamplingKeys s, model::Pooling p,
       std::size_t most)
      : weights(std::move(w)),
        vocab(std::move(v)),
        info(std::move(i)),
        sampling(std::move(s)),
        pooling(p),
        most_tokens(most) {}

  std::shared_ptr<const model::Weights> weights;
  model::Vocab vocab;
  ModelInfo info;
  model::SamplingKeys sampling;
  model::Pooling pooling;   ///< of embeddings
  std::size_t most_tokens;  ///< of a prompt: far beyond the model's context
  mutable std::once_flag hashed;
  mutable std::uint64_t hash = 0;  ///< of the file, when it is asked for
};

}  // namespace winnow
