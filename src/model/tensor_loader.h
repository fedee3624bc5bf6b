// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ggml-backend.h>
#include <ggml-cpp.h>
#include <ggml.h>
#include <gguf.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "model/mapped_file.h"

namespace winnow::model {

/// Tensors and the memory that they lie in.
struct LoadedTensors {
  std::map<ggml_type, std::size_t> bytes_by_type;  ///< of the matrices
  std::size_t bytes = 0;
  std::unordered_map<const ggml_tensor*, std::size_t> offsets;  ///< in the file, of what may be repacked
  std::vector<ggml_context_ptr> contexts;
  std::vector<ggml_backend_buffer_ptr> buffers;
};

/// Takes tensors out of a file into the places where the backend wants them. All calls throw ModelError: a tensor that
/// is missing, or has another shape or type than was asked for.
class TensorLoader {
 public:
  using Shape = std::vector<std::int64_t>;

  TensorLoader(LoadedTensors& out, const gguf_context* gguf, const MappedFile& file, const std::string& path);

  bool has(const std::string& name) const { return gguf_find_tensor(gguf_, name.c_str()) >= 0; }

  /// A tensor that is read where it lies in the file.
  ggml_tensor* mapped(const std::string& name, const Shape& shape);
  /// The same, which must be of f32.
  ggml_tensor* mapped_f32(const std::string& name, const Shape& shape);
  /// Null: there is none.
  ggml_tensor* mapped_if_there(const std::string& name, const Shape& shape);
  /// Vectors that follow each other in one tensor.
  std::vector<ggml_tensor*> mapped_parts(const std::string& name, const std::vector<std::int64_t>& lengths);

  /// A matrix [in, out] for products: repacked where that is faster.
  ggml_tensor* matrix(const std::string& name, std::int64_t in, std::int64_t out);
  /// Matrices that share their input and follow each other in one tensor.
  std::vector<ggml_tensor*> matrices(const std::string& name, std::int64_t in, const std::vector<std::int64_t>& outs);

  /// Matrices that follow each other, [in, out, count]: read where they lie in the file.
  ggml_tensor* experts(const std::string& name, const Shape& shape);

  /// Allocates and fills the repacked tensors. Throws MemoryError.
  void finish();
  /// Names of the file's tensors that nobody has asked for.
  std::vector<std::string> unused() const;

 private:
  struct Info {
    ggml_type type;
    Shape shape;
    std::size_t offset;  ///< in the file
  };
  struct Mapped {
    ggml_backend_buffer_t buffer = nullptr;
    ggml_context* context = nullptr;
  };
  struct Repacked {
    ggml_context* context = nullptr;
    std::vector<std::pair<ggml_tensor*, std::size_t>> tensors;
  };

  ggml_context* new_context();
  Info find(const std::string& name, const Shape& expected);
  void check_f32(const std::string& name, const Info& info) const;
  ggml_tensor* map(const std::string& name, const Info& info);
  ggml_tensor* place_matrix(const std::string& name, const Info& info);

  LoadedTensors& out_;
  const gguf_context* gguf_;
  const MappedFile& file_;
  const std::string& path_;
  std::vector<ggml_backend_buffer_type_t> repacking_;
  Mapped mapped_;
  std::map<ggml_backend_buffer_type_t, Repacked> repacked_;
  std::set<std::string> used_;
};

}  // namespace winnow::model
