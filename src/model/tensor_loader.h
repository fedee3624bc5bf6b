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

#include "model/expert_matrices.h"
#include "model/model_file.h"

namespace winnow::model {

/// Tensors and the memory that they lie in.
struct LoadedTensors {
  std::map<ggml_type, std::size_t> bytes_by_type;  ///< of the matrices
  std::size_t bytes = 0;
  std::unordered_map<const ggml_tensor*, const std::byte*> in_file;  ///< where what may be repacked is mapped
  std::unordered_map<const ggml_tensor*, std::int64_t> first_rows;   ///< of parts, in the file's tensor; absent: 0
  std::vector<ggml_context_ptr> contexts;
  std::vector<ggml_backend_buffer_ptr> buffers;
};

/// Takes tensors out of a model's file or files into the places where the backend wants them. All calls throw
/// ModelError: a tensor that is missing, or has another shape or type than was asked for.
class TensorLoader {
 public:
  using Shape = std::vector<std::int64_t>;

  /// `file` outlives the loader; what is mapped outlives the tensors.
  TensorLoader(LoadedTensors& out, const ModelFile& file);

  bool has(const std::string& name) const { return places_.contains(name); }

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

  /// Matrices that follow each other, [in, out, count]: repacked where single rows are multiplied faster so, and also
  /// read where they lie in the file where that is better for many rows.
  ExpertMatrices experts(const std::string& name, const Shape& shape);

  /// Memory that the tensors so far take, those that are mapped among them.
  std::size_t bytes() const;
  /// Allocates and fills the repacked tensors. Throws MemoryError.
  void finish();
  /// Names of the file's tensors that nobody has asked for.
  std::vector<std::string> unused() const;

 private:
  /// Of a tensor in the model's files.
  struct Place {
    const ModelPart* part = nullptr;
    ggml_backend_buffer_t buffer = nullptr;  ///< over all of the part
    std::int64_t id = 0;                     ///< in it
  };
  struct Info {
    const ModelPart* part;
    ggml_backend_buffer_t buffer;
    ggml_type type;
    Shape shape;
    std::size_t offset;  ///< in the part

    std::byte* data() const { return const_cast<std::byte*>(part->mapped->data()) + offset; }
  };
  struct Repacked {
    ggml_context* context = nullptr;
    std::vector<std::pair<ggml_tensor*, const std::byte*>> tensors;  ///< and where they are mapped
  };

  static std::size_t bytes_of(ggml_backend_buffer_type_t type, const Repacked& place);
  ggml_context* new_context();
  Info find(const std::string& name, const Shape& expected);
  void check_f32(const std::string& name, const Info& info) const;
  ggml_tensor* map(const std::string& name, const Info& info);
  ggml_tensor* place_matrix(const std::string& name, const Info& info);
  ggml_tensor* repack(const std::string& name, const Info& info, ggml_backend_buffer_type_t type);

  LoadedTensors& out_;
  const std::string& path_;  ///< of the model
  std::vector<ggml_backend_buffer_type_t> repacking_;
  bool repacks_experts_;
  std::map<std::string, Place> places_;
  ggml_context* mapped_ = nullptr;
  std::map<ggml_backend_buffer_type_t, Repacked> repacked_;
  std::set<std::string> used_;
  std::set<const std::byte*> counted_;  ///< what is mapped, which several tensors may share
};

}  // namespace winnow::model
