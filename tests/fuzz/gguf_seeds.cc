// Headers of small models of every architecture.
#include <ggml-cpp.h>
#include <gguf.h>

#include <filesystem>

#include "fuzz/seeds.h"
#include "support/tiny_gguf.h"

void winnow::test::write_seeds(const std::filesystem::path& folder) {
  for (const char* arch : {"llama", "qwen2", "qwen3", "gemma"}) {
    TinyModel model;
    model.arch = arch;
    model.n_layer = 1;
    model.rope_factors = model.arch == "llama";
    const std::filesystem::path path = folder / arch;
    write_tiny_gguf(model, path.string());
    const gguf_context_ptr gguf(gguf_init_from_file(path.c_str(), {true, nullptr}));
    std::filesystem::resize_file(path, gguf_get_data_offset(gguf.get()));
  }
}
