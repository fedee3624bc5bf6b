// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "winnow/export.h"
#include "winnow/model.h"

namespace winnow {

/// Tensors of a file that are of one type.
struct TypeShare {
  std::string type;  ///< such as `q4_k`
  std::size_t bytes = 0;
};

/// Description of a GGUF file, and whether winnow runs it.
struct ModelDescription {
  /// The value that Model::info() would have. Where winnow does not run the file, what its keys say as far as they are
  /// those that most architectures have, and without `layers`; 0 and empty: the file does not say.
  ModelInfo info;
  int parts = 1;                      ///< files that the model consists of
  std::size_t file_bytes = 0;         ///< of all parts; of the first one where winnow does not run the model
  std::vector<TypeShare> file_types;  ///< of the same, the type with the most bytes first
  int window = 0;                     ///< tokens that some layer's queries see; 0: all
  std::string refusal;  ///< the sentence that Model::load() throws, with the key or tensor; empty: winnow runs it
};

/// Reads no weights. Throws ModelError where the path is no GGUF file, or too little of one to say what it is.
WINNOW_EXPORT ModelDescription describe_model(const std::string& path);

}  // namespace winnow
