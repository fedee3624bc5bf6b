// SPDX-License-Identifier: Apache-2.0
#include "model/stated_info.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <limits>
#include <map>

#include "base/as_size.h"
#include "model/mapped_file.h"

namespace winnow::model {

namespace {

/// An integer of the architecture; 0 if missing or invalid.
int stated(const GgufHeader& header, const std::string& key) {
  const auto value = header.integer(key).value_or(0);
  return value > 0 && value <= std::numeric_limits<int>::max() ? static_cast<int>(value) : 0;
}

/// Elements of a tensor; 0 if its shape or type is invalid.
std::size_t elements_of(const TensorEntry& entry) {
  constexpr std::size_t kMost = std::size_t{1} << 48U;
  std::size_t out = 1;
  for (const auto n : entry.shape) {
    if (n < 1 || as_size(n) > kMost / out) return 0;
    out *= as_size(n);
  }
  return entry.type < GGML_TYPE_COUNT && ggml_blck_size(static_cast<ggml_type>(entry.type)) > 0 ? out : 0;
}

/// Bytes of a tensor; 0 if its shape or type is invalid.
std::size_t bytes_of(const TensorEntry& entry) {
  const std::size_t elements = elements_of(entry);
  if (elements == 0) return 0;
  const auto type = static_cast<ggml_type>(entry.type);
  return elements / as_size(ggml_blck_size(type)) * ggml_type_size(type);
}

std::string name_of_type(std::uint32_t type) {
  std::string name = ggml_type_name(static_cast<ggml_type>(type));
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name;
}

void add_tensors(const GgufHeader& header, ModelInfo& info) {
  std::map<ggml_type, std::size_t> bytes_by_type;  // of matrices
  for (const auto& entry : header.tensors) {
    const std::size_t bytes = bytes_of(entry);
    if (bytes == 0) continue;
    info.n_params += elements_of(entry);
    info.weight_bytes += bytes;
    if (entry.dims > 1) bytes_by_type[static_cast<ggml_type>(entry.type)] += bytes;
  }
  std::size_t most = 0;
  for (const auto& [type, bytes] : bytes_by_type) {
    if (bytes <= most) continue;
    most = bytes;
    info.weight_type = ggml_type_name(type);
  }
}

}  // namespace

ModelDescription stated_info(const std::string& path) {
  const MappedFile file(path);
  const auto header = read_gguf_header({file.data(), file.size()}, path);
  ModelDescription out;
  ModelInfo& info = out.info;
  info.path = path;
  info.arch = header.text("general.architecture").value_or("");
  info.name = header.text("general.name").value_or("");
  out.parts = std::max(1, stated(header, "split.count"));
  const auto number = [&](const char* key) { return stated(header, info.arch + key); };
  info.n_layer = number(".block_count");
  info.n_embd = number(".embedding_length");
  info.n_head = number(".attention.head_count");
  info.n_head_kv = number(".attention.head_count_kv");
  info.head_dim = number(".attention.key_length");
  if (info.n_head_kv == 0) info.n_head_kv = info.n_head;
  if (info.head_dim == 0 && info.n_head > 0) info.head_dim = info.n_embd / info.n_head;
  info.n_expert = number(".expert_count");
  info.n_expert_used = number(".expert_used_count");
  info.ctx_train = info.context = number(".context_length");
  out.window = number(".attention.sliding_window");
  if (const Value* const tokens = header.find("tokenizer.ggml.tokens"))
    info.n_vocab = static_cast<int>(tokens->texts.size());
  add_tensors(header, info);
  add_file(header, file.size(), out);
  return out;
}

void add_file(const GgufHeader& header, std::size_t bytes, ModelDescription& to) {
  to.file_bytes += bytes;
  for (const auto& entry : header.tensors) {
    const std::size_t more = bytes_of(entry);
    if (more == 0) continue;
    const auto type = name_of_type(entry.type);
    const auto known = std::ranges::find(to.file_types, type, &TypeShare::type);
    known == to.file_types.end() ? to.file_types.push_back({type, more}) : void(known->bytes += more);
  }
  std::ranges::stable_sort(to.file_types, std::greater(), &TypeShare::bytes);
}

}  // namespace winnow::model
