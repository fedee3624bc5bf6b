// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ggml-cpp.h>
#include <ggml.h>

#include <cstddef>
#include <map>
#include <vector>

#include "base/memory.h"

namespace winnow::network {

/// Custom nodes of a device's graph, which the host computes over copies: attention, and the choice of experts.
class HostNodes {
 public:
  explicit HostNodes(MemoryAccount& account) : account_(account) {}

  static bool is_one(const ggml_tensor& node) { return node.op == GGML_OP_CUSTOM; }

  /// Copies nodes [first, end) of a graph, with what they read, to the host's memory. Returns a graph of the copies,
  /// valid until the next call. Throws MemoryError. REQUIRES: all are custom nodes.
  ggml_cgraph* copy(ggml_cgraph* graph, int first, int end);
  /// Writes the nodes' results to the device's memory.
  void write() const;

 private:
  std::byte* place(const ggml_tensor& tensor) { return memory_.data() + places_.at(&tensor); }
  /// Assigns a place in `memory_` to a tensor, unless it has one. Returns true if it is new.
  bool add(const ggml_tensor& tensor);
  ggml_tensor* copy_of(const ggml_tensor& tensor);

  MemoryAccount& account_;
  Buffer memory_;
  std::size_t bytes_ = 0;
  std::map<const ggml_tensor*, std::size_t> places_;  ///< in `memory_`
  std::vector<std::byte> metadata_;
  ggml_context_ptr context_;
  std::map<std::size_t, ggml_tensor*> results_;  ///< the last node of each place
};

}  // namespace winnow::network
