// SPDX-License-Identifier: Apache-2.0
#include "support/split_gguf.h"

#include <ggml-cpp.h>

#include <cstdio>
#include <stdexcept>

namespace winnow::test {

std::vector<std::string> split_gguf(const std::string& from, const std::string& prefix, const Split& how) {
  ggml_context* data = nullptr;
  const gguf_context_ptr whole(gguf_init_from_file(from.c_str(), {false, &data}));
  const ggml_context_ptr owner(data);
  if (whole == nullptr) throw std::runtime_error("cannot read " + from);
  const auto tensors = gguf_get_n_tensors(whole.get());
  const int first_with_tensors = how.keys_alone ? 1 : 0;
  std::vector<std::string> paths;
  for (int part = 0; part < how.parts; ++part) {
    const gguf_context_ptr out(gguf_init_empty());
    if (part == 0) gguf_set_kv(out.get(), whole.get());
    gguf_set_val_u16(out.get(), "split.no", static_cast<std::uint16_t>(part));
    gguf_set_val_u16(out.get(), "split.count", static_cast<std::uint16_t>(how.parts));
    gguf_set_val_i32(out.get(), "split.tensors.count", static_cast<std::int32_t>(tensors));
    const std::int64_t own = part - first_with_tensors;
    const std::int64_t with_tensors = how.parts - first_with_tensors;
    for (std::int64_t i = 0; i < tensors; ++i) {
      if (i * with_tensors / tensors == own)
        gguf_add_tensor(out.get(), ggml_get_tensor(data, gguf_get_tensor_name(whole.get(), i)));
    }
    how.edit(part, out.get());
    char ending[32];
    std::snprintf(ending, sizeof(ending), "-%05d-of-%05d.gguf", part + 1, how.parts);
    paths.push_back(prefix + ending);
    if (!gguf_write_to_file(out.get(), paths.back().c_str(), false))
      throw std::runtime_error("cannot write " + paths.back());
  }
  return paths;
}

}  // namespace winnow::test
