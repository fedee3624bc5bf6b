// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "chat/template.h"
#include "model/pooling.h"
#include "model/sampling_keys.h"
#include "model/vocab.h"
#include "model/weights.h"
#include "winnow/model.h"

namespace winnow {

struct Model::Impl {
  Impl(std::shared_ptr<const model::Weights> w, model::Vocab v, ModelInfo i, model::SamplingKeys s, model::Pooling p,
       std::size_t most, std::string source)
      : weights(std::move(w)),
        vocab(std::move(v)),
        info(std::move(i)),
        sampling(std::move(s)),
        pooling(p),
        most_tokens(most),
        own_template(std::move(source)) {}

  std::shared_ptr<const model::Weights> weights;
  model::Vocab vocab;
  ModelInfo info;
  model::SamplingKeys sampling;
  model::Pooling pooling;    ///< of embeddings
  std::size_t most_tokens;   ///< of a prompt: far beyond the model's context
  std::string own_template;  ///< the source of a chat template in place of the file's; empty: there is none
  /// Made when it is first used. Throws TemplateError for one of the user's.
  const chat::Template& chat_template() const;
  mutable std::once_flag hashed;
  mutable std::uint64_t hash = 0;  ///< of the file, when it is asked for

 private:
  mutable std::mutex template_mutex_;
  mutable std::optional<chat::Template> template_;
};

}  // namespace winnow
