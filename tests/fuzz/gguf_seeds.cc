// SPDX-License-Identifier: Apache-2.0
// Headers of small models of every architecture, each after a byte that chooses the weights.
#include <ggml-cpp.h>
#include <gguf.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "fuzz/seeds.h"
#include "support/tiny_gguf.h"

namespace {

using winnow::test::TinyModel;

std::string header_of(const TinyModel& model, const std::filesystem::path& path) {
  write_tiny_gguf(model, path.string());
  const gguf_context_ptr gguf(gguf_init_from_file(path.c_str(), {true, nullptr}));
  std::string out(gguf_get_data_offset(gguf.get()), '\0');
  std::ifstream(path, std::ios::binary).read(out.data(), static_cast<std::streamsize>(out.size()));
  std::filesystem::remove(path);
  return out;
}

}  // namespace

void winnow::test::write_seeds(const std::filesystem::path& folder) {
  constexpr int kWeightKinds = 3;
  TinyModel parts = tiny_of("gemma4");  // with all optional tensors
  parts.shared_kv = 3;
  parts.layer_embedding = 32;
  parts.n_expert = 4;
  for (int kind = 0; kind < kWeightKinds; ++kind) {
    write_seed(folder / ("gemma4-all-parts-" + std::to_string(kind)),
               static_cast<char>(kind) + header_of(parts, folder / "model"));
  }
  for (const auto& row : tiny_architectures()) {
    for (const auto type : {GGML_TYPE_F32, GGML_TYPE_Q4_0, GGML_TYPE_BF16}) {
      TinyModel model = tiny_of(std::string(row.name));
      model.n_layer = 1;
      model.type = type;
      model.tied = type != GGML_TYPE_Q4_0;
      model.rope_factors = model.arch == "llama";
      model.longrope = model.arch == "phi3";
      const std::string name = model.arch + "-" + ggml_type_name(type);
      const std::string header = header_of(model, folder / "model");
      for (int kind = 0; kind < kWeightKinds; ++kind)
        write_seed(folder / (name + "-" + std::to_string(kind)), static_cast<char>(kind) + header);
    }
  }
}
