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

#include "device/device.h"
#include "model/expert_matrices.h"
#include "model/model_file.h"

namespace winnow::model {

/// Tensors and their memory.
struct LoadedTensors {
  std::map<ggml_type, std::size_t> bytes_by_type;  ///< of the matrices
  std::size_t bytes = 0;
  std::unordered_map<const ggml_tensor*, const std::byte*> in_file;  ///< mapped data of tensors that may be repacked
  std::unordered_map<const ggml_tensor*, std::int64_t> first_rows;   ///< of splits of fused tensors: row in the file's
                                                                     ///< tensor; absent: 0
  std::vector<ggml_context_ptr> contexts;
  std::vector<ggml_backend_buffer_ptr> buffers;
  std::vector<device::DeviceMemory> on_device;
};

/// Loads tensors from a model's files into the buffers that the backend wants. All calls throw ModelError for a tensor
/// that is missing or has an unexpected shape or type.
class TensorLoader {
 public:
  using Shape = std::vector<std::int64_t>;

  /// `file` must outlive the loader, and its mapping the tensors. With a device, the tensors of graphs are copied to
  /// it.
  TensorLoader(LoadedTensors& out, const ModelFile& file, device::Device* device = nullptr);

  bool has(const std::string& name) const { return places_.contains(name); }

  /// A tensor that the host reads, from the mapping; must be f32 if it is a vector.
  ggml_tensor* in_file(const std::string& name, const Shape& shape);
  /// A tensor of graphs, used from the mapping if there is no device.
  ggml_tensor* mapped(const std::string& name, const Shape& shape);
  /// The same; must be f32.
  ggml_tensor* mapped_f32(const std::string& name, const Shape& shape);
  /// The same; null if it is missing.
  ggml_tensor* mapped_if_there(const std::string& name, const Shape& shape);
  /// Consecutive vectors of one tensor.
  std::vector<ggml_tensor*> mapped_parts(const std::string& name, const std::vector<std::int64_t>& lengths);

  /// A matrix [in, out] for products, repacked if that is faster.
  ggml_tensor* matrix(const std::string& name, std::int64_t in, std::int64_t out);
  /// Consecutive matrices of one tensor, with the same input.
  std::vector<ggml_tensor*> matrices(const std::string& name, std::int64_t in, const std::vector<std::int64_t>& outs);

  /// Matrices of all experts, [in, out, count]: repacked if that is faster for single rows, and also used from the
  /// mapping if that is better for many rows.
  ExpertMatrices experts(const std::string& name, const Shape& shape);

  /// Memory of the tensors so far, including mapped ones.
  std::size_t bytes() const;
  /// Allocates and fills the repacked tensors. Throws MemoryError.
  void finish();
  /// Names of the file's tensors that were never requested.
  std::vector<std::string> unused() const;

 private:
  /// Place of a tensor in the model's files.
  struct Place {
    const ModelPart* part = nullptr;
    ggml_backend_buffer_t buffer = nullptr;  ///< spans the whole part
    std::int64_t id = 0;                     ///< index in the part
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
    std::vector<std::pair<ggml_tensor*, const std::byte*>> tensors;  ///< with their mapped data
  };

  static std::size_t bytes_of(ggml_backend_buffer_type_t type, const Repacked& place);
  ggml_context* new_context();
  Info find(const std::string& name, const Shape& expected);
  void check_f32(const std::string& name, const Info& info) const;
  ggml_tensor* map(const std::string& name, const Info& info);
  /// The same, or a copy on the device.
  ggml_tensor* for_graphs(const std::string& name, const Info& info);
  ggml_tensor* place_matrix(const std::string& name, const Info& info);
  ggml_tensor* repack(const std::string& name, const Info& info, ggml_backend_buffer_type_t type);

  LoadedTensors& out_;
  const std::string& path_;  ///< path of the model
  device::Device* device_;
  std::vector<ggml_backend_buffer_type_t> repacking_;
  bool repacks_experts_;
  std::map<std::string, Place> places_;
  ggml_context* mapped_ = nullptr;
  std::map<ggml_backend_buffer_type_t, Repacked> repacked_;
  std::set<std::string> used_;
  std::set<const std::byte*> counted_;  ///< mapped data already counted, since several tensors may share it
};

}  // namespace winnow::model
