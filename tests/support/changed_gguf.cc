// SPDX-License-Identifier: Apache-2.0
#include "support/changed_gguf.h"

#include <ggml-cpp.h>
#include <gguf.h>

#include <stdexcept>

namespace winnow::test {

namespace {

/// Copies the value of a key of `from` under another name.
void copy_value(const gguf_context* from, std::int64_t id, const std::string& name, gguf_context* to) {
  switch (gguf_get_kv_type(from, id)) {
    case GGUF_TYPE_UINT32:
      return gguf_set_val_u32(to, name.c_str(), gguf_get_val_u32(from, id));
    case GGUF_TYPE_FLOAT32:
      return gguf_set_val_f32(to, name.c_str(), gguf_get_val_f32(from, id));
    case GGUF_TYPE_BOOL:
      return gguf_set_val_bool(to, name.c_str(), gguf_get_val_bool(from, id));
    case GGUF_TYPE_STRING:
      return gguf_set_val_str(to, name.c_str(), gguf_get_val_str(from, id));
    default:
      throw std::runtime_error("cannot give another name to the key " + std::string(gguf_get_key(from, id)));
  }
}

void rename_architecture(const gguf_context* from, const std::string& arch, gguf_context* to) {
  const std::string key = "general.architecture";
  const std::string old = gguf_get_val_str(from, gguf_find_key(from, key.c_str()));
  for (std::int64_t i = 0; i < gguf_get_n_kv(from); ++i) {
    const std::string name = gguf_get_key(from, i);
    if (!name.starts_with(old + ".")) continue;
    gguf_remove_key(to, name.c_str());
    copy_value(from, i, arch + name.substr(old.size()), to);
  }
  gguf_set_val_str(to, key.c_str(), arch.c_str());
}

/// Replaces only the first piece found in the name, so that two pieces can be swapped.
std::string renamed(std::string name, const GgufChanges& changes) {
  for (const auto& [piece, other] : changes.names) {
    const auto at = name.find(piece);
    if (at != std::string::npos) return name.replace(at, piece.size(), other);
  }
  return name;
}

/// Cuts a vector to its first values.
void shorten(ggml_tensor* tensor, const GgufChanges& changes) {
  for (const auto& [piece, length] : changes.lengths) {
    if (std::string(tensor->name).find(piece) == std::string::npos) continue;
    tensor->ne[0] = length;
    for (int i = 1; i < GGML_MAX_DIMS; ++i) tensor->nb[i] = tensor->nb[0] * static_cast<std::size_t>(length);
  }
}

}  // namespace

void copy_gguf(const std::string& from, const std::string& to, const GgufChanges& changes) {
  ggml_context* data = nullptr;
  const gguf_context_ptr old(gguf_init_from_file(from.c_str(), {false, &data}));
  const ggml_context_ptr owner(data);
  if (old == nullptr) throw std::runtime_error("cannot read " + from);
  const gguf_context_ptr copy(gguf_init_empty());
  gguf_set_kv(copy.get(), old.get());
  if (!changes.arch.empty()) rename_architecture(old.get(), changes.arch, copy.get());
  std::vector<ggml_tensor*> tensors;  // collected before any is renamed to another's name
  for (std::int64_t i = 0; i < gguf_get_n_tensors(old.get()); ++i)
    tensors.push_back(ggml_get_tensor(data, gguf_get_tensor_name(old.get(), i)));
  for (ggml_tensor* const tensor : tensors) {
    const std::string name = tensor->name;
    const auto count = static_cast<std::size_t>(ggml_nelements(tensor));
    if (changes.edit && tensor->type == GGML_TYPE_F32) changes.edit(name, {static_cast<float*>(tensor->data), count});
    shorten(tensor, changes);
    ggml_set_name(tensor, renamed(name, changes).c_str());
    gguf_add_tensor(copy.get(), tensor);
  }
  if (!gguf_write_to_file(copy.get(), to.c_str(), false)) throw std::runtime_error("cannot write " + to);
}

}  // namespace winnow::test
