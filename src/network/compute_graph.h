// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ggml-alloc.h>
#include <ggml-backend.h>
#include <ggml-cpp.h>
#include <ggml-cpu.h>
#include <ggml.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "base/as_size.h"
#include "base/format.h"
#include "base/memory.h"
#include "device/device.h"
#include "network/host_nodes.h"
#include "network/layer_graph.h"
#include "network/linear.h"
#include "winnow/error.h"

namespace winnow::network {

/// A graph with the counted memory of its intermediate results, on the CPU or on a device. A graph is reused from call
/// to call for the same number of rows.
class ComputeGraph {
 public:
  static constexpr int kNodesPerLayer = 112;  // a layer has up to 100
  static constexpr int kNodesAround = 16;

  /// `account` counts the host's memory. `device` may be null. `more_nodes`: of each layer.
  ComputeGraph(MemoryAccount& account, Bf16Kernels& kernels, int layers, device::Device* device = nullptr,
               int more_nodes = 0)
      : device_(device),
        account_(device == nullptr ? account : device->account()),
        linear_(kernels, device),
        nodes_(as_size(layers) * as_size(kNodesPerLayer + more_nodes) + kNodesAround),
        metadata_(nodes_ * ggml_tensor_overhead() + ggml_graph_overhead_custom(nodes_, false)),
        allocator_(ggml_gallocr_new(device == nullptr ? ggml_backend_cpu_buffer_type() : device->memory())),
        slots_(as_size(layers)) {}
  ComputeGraph(const ComputeGraph&) = delete;
  ComputeGraph& operator=(const ComputeGraph&) = delete;
  ~ComputeGraph() { account_.remove(counted_); }

  /// Begins a new graph.
  ggml_context* begin(const Products& products = {}) {
    rows_ = 0;
    products_ = products;
    linear_.begin(products);
    context_.reset(ggml_init({metadata_.size(), metadata_.data(), true}));
    graph_ = ggml_new_graph_custom(context_.get(), nodes_, false);
    inputs_.clear();
    copied_.clear();
    for (auto& slot : slots_) slot.first = nullptr;
    return context_.get();
  }
  /// A tensor that reads the caller's memory each time the graph runs.
  ggml_tensor* wrap(ggml_type type, std::int64_t columns, std::int64_t rows, void* data) {
    ggml_tensor* const tensor = ggml_new_tensor_2d(context_.get(), type, columns, rows);
    if (device_ != nullptr) {
      ggml_set_input(tensor);  // allocated with the graph
      copied_.emplace_back(tensor, data);
      return tensor;
    }
    inputs_.emplace_back(ggml_backend_cpu_buffer_from_ptr(data, ggml_nbytes(tensor)));
    ggml_backend_tensor_alloc(inputs_.back().get(), tensor, data);
    return tensor;
  }
  Linear& linear() { return linear_; }
  AttentionSlot& slot(int layer, AttentionOp* const* attention, FiniteCheck& finite) {
    auto& slot = slots_[layer];
    slot.attention = attention;
    slot.finite = &finite;
    return slot;
  }
  /// Ends the graph and allocates its nodes. Throws MemoryError; there is no graph then.
  void finish(ggml_tensor* result, int rows) {
    result_ = result;
    ggml_build_forward_expand(graph_, result);
    if (device_ != nullptr) check_supported();
    if (rows > reserved_rows_) reserve(rows);
    const bool done = ggml_gallocr_alloc_graph(allocator_.get(),
                                               graph_);  // allocates more if this layer differs from the reserved one
    count();
    if (!done) throw MemoryError(fmt::format("cannot allocate the work space for {} rows", rows), 0);
    rows_ = rows;
  }

  /// Rows of the graph that is ready to run; 0: none.
  int rows() const { return rows_; }
  const Products& products() const { return products_; }
  ggml_cgraph* graph() const { return graph_; }
  /// The attention slot that begins with a node; null: none.
  const AttentionSlot* slot_at(const ggml_tensor* node) const {
    const auto found = std::ranges::find(slots_, node, &AttentionSlot::first);
    return found == slots_.end() ? nullptr : &*found;
  }
  /// The tensors of all attention slots.
  std::vector<AttentionOp::Tensors> slots() const {
    std::vector<AttentionOp::Tensors> out;
    for (const auto& slot : slots_) {
      if (slot.first != nullptr) out.push_back(tensors_of(slot));
    }
    return out;
  }
  /// Null: the CPU.
  device::Device* device() const { return device_; }
  /// Copies what wrap() has wrapped to the device.
  void copy_inputs() const {
    for (const auto& [tensor, data] : copied_) {
      const bool is_read = tensor->buffer != nullptr;  // layers without RoPE read no positions
      if (is_read) ggml_backend_tensor_set(tensor, data, 0, ggml_nbytes(tensor));
    }
  }
  /// Copies the beginning of the result after a run.
  void read_result(std::span<float> to) const { ggml_backend_tensor_get(result_, to.data(), 0, to.size_bytes()); }

 private:
  /// Throws UsageError for a node that the device cannot compute.
  void check_supported() const {
    for (int i = 0; i < ggml_graph_n_nodes(graph_); ++i) {
      const auto& node = *ggml_graph_node(graph_, i);
      if (HostNodes::is_custom(node) || device_->supports(node)) continue;
      const auto* const weight = node.src[0];
      throw UsageError(fmt::format("{} cannot compute {} with a tensor of type {}: use the CPU for this model",
                                   device_->name(), ggml_op_name(node.op),
                                   ggml_type_name(weight == nullptr ? node.type : weight->type)));
    }
  }
  std::size_t available() const { return device_ == nullptr ? available_memory() : device_->available(); }
  /// Queries the size first and refuses what is not available: Linux would overcommit, and kill the process later.
  void reserve(int rows) {
    reserved_rows_ = 0;
    std::size_t bytes = 0;
    ggml_gallocr_reserve_n_size(allocator_.get(), graph_, nullptr, nullptr, &bytes);  // also shrinks the buffer
    count();
    if (bytes > available() || !ggml_gallocr_reserve(allocator_.get(), graph_)) {
      throw MemoryError(fmt::format("cannot allocate {} for the work space of {} rows ({} available)",
                                    format_bytes(bytes), rows, format_bytes(available())),
                        bytes);
    }
    reserved_rows_ = rows;
  }

  void count() {
    account_.remove(std::exchange(counted_, ggml_gallocr_get_buffer_size(allocator_.get(), 0)));
    account_.add(counted_);
  }

  device::Device* device_;
  MemoryAccount& account_;
  Linear linear_;
  Products products_;
  std::size_t nodes_;
  std::vector<std::byte> metadata_;
  ggml_context_ptr context_;
  ggml_gallocr_ptr allocator_;
  ggml_cgraph* graph_ = nullptr;
  std::vector<ggml_backend_buffer_ptr> inputs_;
  std::vector<std::pair<ggml_tensor*, const void*>> copied_;  ///< inputs of a device's graph
  std::vector<AttentionSlot> slots_;
  ggml_tensor* result_ = nullptr;
  int rows_ = 0;
  int reserved_rows_ = 0;  ///< largest graph, in rows, that fits the allocation
  std::size_t counted_ = 0;
};

}  // namespace winnow::network
