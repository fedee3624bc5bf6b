// SPDX-License-Identifier: Apache-2.0
#include "network/host_nodes.h"

#include <ggml-backend.h>

#include <algorithm>

#include "base/as_size.h"

namespace winnow::network {

bool HostNodes::add(const ggml_tensor& tensor) {
  constexpr std::size_t kLine = 64;
  if (!places_.emplace(&tensor, bytes_).second) return false;
  bytes_ += (ggml_nbytes(&tensor) + kLine - 1) / kLine * kLine;
  return true;
}

ggml_tensor* HostNodes::copy_of(const ggml_tensor& tensor) {
  ggml_tensor* const out = ggml_new_tensor_1d(context_.get(), GGML_TYPE_I8, 1);
  *out = tensor;
  out->data = place(tensor);
  out->buffer = nullptr;
  out->view_src = nullptr;
  return out;
}

std::vector<const ggml_tensor*> HostNodes::place_all(ggml_cgraph* graph, int first, int end) {
  places_.clear();
  results_.clear();
  bytes_ = 0;
  std::vector<const ggml_tensor*> inputs;
  for (int i = first; i < end; ++i) {
    ggml_tensor* const node = ggml_graph_node(graph, i);
    for (const ggml_tensor* const source : node->src) {
      if (source != nullptr && add(*source)) inputs.push_back(source);
    }
    const bool is_in_place = node->view_src != nullptr;  // of its first source
    if (is_in_place) {
      places_[node] = places_.at(node->src[0]);
    } else {
      add(*node);
    }
    results_[places_.at(node)] = node;
  }
  return inputs;
}

void HostNodes::reserve(ggml_cgraph* graph) {
  std::size_t most = 0;
  for_each_part(graph, [&](int first, int end) {
    if (!is_custom(*ggml_graph_node(graph, first))) return;
    place_all(graph, first, end);
    most = std::max(most, bytes_);
  });
  if (memory_.size() >= most) return;
  memory_ = Buffer();  // frees the old one first
  memory_ = Buffer(account_, most, "copies of a device's tensors");
}

ggml_cgraph* HostNodes::copy(ggml_cgraph* graph, int first, int end) {
  const auto inputs = place_all(graph, first, end);
  const std::size_t nodes = as_size(end - first);
  metadata_.resize((nodes + inputs.size()) * ggml_tensor_overhead() + ggml_graph_overhead_custom(nodes, false));
  context_.reset(ggml_init({metadata_.size(), metadata_.data(), true}));
  std::map<const ggml_tensor*, ggml_tensor*> copies;
  for (const auto* const input : inputs) {
    ggml_tensor* const to = copies[input] = copy_of(*input);
    ggml_backend_tensor_get(input, to->data, 0, ggml_nbytes(input));
    to->op = GGML_OP_NONE;
    for (auto& source : to->src) source = nullptr;
  }
  ggml_cgraph* const out = ggml_new_graph_custom(context_.get(), nodes, false);
  for (int i = first; i < end; ++i) {
    const ggml_tensor* const node = ggml_graph_node(graph, i);
    ggml_tensor* const to = copies[node] = copy_of(*node);
    for (auto& source : to->src) source = source == nullptr ? nullptr : copies.at(source);
    ggml_graph_add_node(out, to);
  }
  return out;
}

void HostNodes::write() const {
  for (const auto& [place, node] : results_)
    ggml_backend_tensor_set(node, memory_.data() + place, 0, ggml_nbytes(node));
}

}  // namespace winnow::network
