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
  model::Pooling pooling;    ///< for embeddings
  std::size_t most_tokens;   ///< limit of a prompt, far beyond the model's context
  std::string own_template;  ///< source of a chat template that replaces the file's; empty: none
  /// Parsed on first use. Throws TemplateError for a template of the user.
  const chat::Template& chat_template() const;
  mutable std::once_flag hashed;
  mutable std::uint64_t hash = 0;  ///< of the file; computed on first use

 private:
  mutable std::mutex template_mutex_;
  mutable std::optional<chat::Template> template_;
};

namespace engine {

// The network behind a model, for folders that are built on the engine.
inline const model::Weights& weights_of(const Model& model) { return *model.impl().weights; }
inline const model::Hparams& hparams_of(const Model& model) { return weights_of(model).hparams(); }

}  // namespace engine

}  // namespace winnow
