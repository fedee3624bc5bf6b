// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "model/gguf_file.h"
#include "model/mapped_file.h"

namespace winnow::model {

/// A model's GGUF file, opened once: what was checked is what ggml, libllama and the weights get. The header is copied
/// before it is checked, so that nobody who writes to the file can change it afterwards; tensors are read where they
/// are mapped.
class ModelFile {
 public:
  /// Throws ModelError: what MappedFile, read_gguf_header() and check_gguf() throw.
  explicit ModelFile(const std::string& path);

  const std::string& path() const { return path_; }
  const std::shared_ptr<const MappedFile>& mapped() const { return mapped_; }
  /// libllama asks for one that it may change, and does not.
  gguf_context* gguf() const { return gguf_.get(); }

 private:
  std::string path_;
  std::shared_ptr<const MappedFile> mapped_;
  GgufPtr gguf_;
};

}  // namespace winnow::model
