// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/gguf_file.h"
#include "model/mapped_file.h"

namespace winnow::model {

/// One of the files that a model consists of.
struct ModelPart {
  std::string path;
  std::shared_ptr<const MappedFile> mapped;
  GgufPtr gguf;
};

/// A model's GGUF file, or all its parts, each opened once: what was checked is what ggml, libllama and the weights
/// get. Headers are copied before they are checked, so that nobody who writes to a file can change them afterwards;
/// tensors are read where they are mapped.
class ModelFile {
 public:
  /// `path` is the file, or the first part, whose name ends with -00001-of-0000N.gguf; the others lie beside it. Throws
  /// ModelError: what MappedFile, read_gguf_header(), check_gguf() and check_model_keys() throw, and parts that do not
  /// belong together.
  explicit ModelFile(const std::string& path);

  const std::string& path() const { return parts_.front().path; }
  /// The first part has all the keys that say what the model is; each has tensors of its own, or none.
  const std::vector<ModelPart>& parts() const { return parts_; }
  /// libllama asks for one that it may change, and does not.
  gguf_context* gguf() const { return parts_.front().gguf.get(); }

 private:
  std::vector<ModelPart> parts_;
};

}  // namespace winnow::model
