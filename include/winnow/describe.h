// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "winnow/export.h"
#include "winnow/model.h"

namespace winnow {

/// Bytes of a file's tensors of one type.
struct TypeShare {
  std::string type;  ///< such as `q4_k`
  std::size_t bytes = 0;
};

/// Description of a GGUF file, and whether winnow runs it.
struct ModelDescription {
  /// Model::info() of the loaded model. If winnow does not run the file, only the common keys of the file, without
  /// `layers`; 0 or empty: not in the file.
  ModelInfo info;
  int parts = 1;                      ///< number of files of the model
  std::size_t file_bytes = 0;         ///< of all parts; of the first one if winnow does not run the model
  std::vector<TypeShare> file_types;  ///< tensor bytes by type, of the same files, most first
  int window = 0;                     ///< the largest window of a layer, in tokens; 0: no layer has one
  std::string refusal;  ///< message of the error that Model::load() throws, with the key or tensor; empty: winnow runs
                        ///< the file
};

/// Reads no weights. Throws ModelError if the path is not a GGUF file or the file is too damaged to describe.
WINNOW_EXPORT ModelDescription describe_model(const std::string& path);

}  // namespace winnow
