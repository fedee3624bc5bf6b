// gguf_seeds FOLDER: headers of small models of every architecture, to start from.
#include <ggml-cpp.h>
#include <gguf.h>

#include <cstdio>
#include <filesystem>

#include "support/tiny_gguf.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
    return 2;
  }
  for (const char* arch : {"llama", "qwen2", "qwen3", "gemma"}) {
    winnow::test::TinyModel model;
    model.arch = arch;
    model.n_layer = 1;
    model.rope_factors = model.arch == "llama";
    const std::filesystem::path path = std::filesystem::path(argv[1]) / arch;
    winnow::test::write_tiny_gguf(model, path.string());
    const gguf_context_ptr gguf(gguf_init_from_file(path.c_str(), {true, nullptr}));
    std::filesystem::resize_file(path, gguf_get_data_offset(gguf.get()));
  }
}
