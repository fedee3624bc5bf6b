#pragma once

#include <memory>

#include "model/vocab.h"
#include "model/weights.h"
#include "winnow/model.h"

namespace winnow {

struct Model::Impl {
  std::shared_ptr<const model::Weights> weights;
  model::Vocab vocab;
  ModelInfo info;
};

}  // namespace winnow
