// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ggml-cpp.h>
#include <ggml.h>

#include <cstddef>
#include <map>
#include <vector>

#include "base/memory.h"

namespace winnow::network {

/// Custom nodes of a device's graph, those of attention, which the host computes over copies.
class HostNodes {
 public:
  explicit HostNodes(MemoryAccount& account) : account_(account) {}

  static bool is_custom(const ggml_tensor& node) { return node.op == GGML_OP_CUSTOM; }

  /// Allocates memory for copies of any consecutive custom nodes of a graph. Throws MemoryError.
  void reserve(ggml_cgraph* graph);
  /// Copies nodes [first, end) of a graph, with what they read, to the host's memory. Returns a graph of the copies,
  /// valid until the next call. REQUIRES: all are custom nodes, and reserve() was called for the graph.
  ggml_cgraph* copy(ggml_cgraph* graph, int first, int end);
  /// Writes the nodes' results to the device's memory.
  void write() const;

 private:
  std::byte* place(const ggml_tensor& tensor) { return memory_.data() + places_.at(&tensor); }
  /// Assigns a place in `memory_` to a tensor, unless it has one. Returns true if it is new.
  bool add(const ggml_tensor& tensor);
  /// Assigns places to custom nodes and what they read. Returns those that they read.
  std::vector<const ggml_tensor*> place_all(ggml_cgraph* graph, int first, int end);
  ggml_tensor* copy_of(const ggml_tensor& tensor);

  MemoryAccount& account_;
  Buffer memory_;
  std::size_t bytes_ = 0;
  std::map<const ggml_tensor*, std::size_t> places_;  ///< in `memory_`
  std::vector<std::byte> metadata_;
  ggml_context_ptr context_;
  std::map<std::size_t, ggml_tensor*> results_;  ///< the last node of each place
};

/// Calls `part(first, end)` for the longest runs of nodes of a graph that are all custom or all not.
template <class Part>
void for_each_part(ggml_cgraph* graph, const Part& part) {
  const auto is_custom = [graph](int i) { return HostNodes::is_custom(*ggml_graph_node(graph, i)); };
  const int nodes = ggml_graph_n_nodes(graph);
  for (int first = 0, end = 0; first < nodes; first = end) {
    while (end < nodes && is_custom(end) == is_custom(first)) ++end;
    part(first, end);
  }
}

}  // namespace winnow::network
