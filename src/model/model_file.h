// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/gguf_file.h"
#include "model/mapped_file.h"

namespace winnow::model {

/// A file of a model.
struct ModelPart {
  std::string path;
  std::shared_ptr<const MappedFile> mapped;
  GgufPtr gguf;
};

/// A model's GGUF file, or all its parts. Each is opened once, so ggml, libllama and the weights get exactly what was
/// checked. Headers are copied before the checks, so that later writes to a file cannot change them; tensors are read
/// from the mapping.
class ModelFile {
 public:
  /// `path` is the file, or the first part, named -00001-of-0000N.gguf, with the others beside it. Throws ModelError as
  /// MappedFile, read_gguf_header(), check_gguf() and check_model_keys() do, and for parts that do not belong together.
  explicit ModelFile(const std::string& path);

  const std::string& path() const { return parts_.front().path; }
  /// The first part has all keys that describe the model; each may have tensors.
  const std::vector<ModelPart>& parts() const { return parts_; }
  /// Not const, for libllama, which does not change it.
  gguf_context* gguf() const { return parts_.front().gguf.get(); }

 private:
  std::vector<ModelPart> parts_;
};

}  // namespace winnow::model
