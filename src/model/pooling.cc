// SPDX-License-Identifier: Apache-2.0
#include "model/pooling.h"

#include <llama.h>
#include <spdlog/fmt/fmt.h>

#include "model/gguf_file.h"
#include "winnow/error.h"

namespace winnow::model {

/// Numbered as in llama.h. Encoders' pooling of the first token is refused, since that token sees no other one here,
/// and so are ranking models, whose output differs.
Pooling read_pooling(const ModelFile& file) {
  const GgufKeys keys(file.gguf(), file.path());
  const auto key = keys.text("general.architecture").value_or("") + ".pooling_type";
  const int type = keys.integer(key, 0, LLAMA_POOLING_TYPE_RANK).value_or(LLAMA_POOLING_TYPE_NONE);
  if (type == LLAMA_POOLING_TYPE_CLS || type == LLAMA_POOLING_TYPE_RANK)
    throw ModelError(fmt::format("{}: key {} is {}, expected 1 (mean) or 3 (last)", file.path(), key, type));
  return type == LLAMA_POOLING_TYPE_LAST ? Pooling::last : Pooling::mean;
}

}  // namespace winnow::model
