// SPDX-License-Identifier: Apache-2.0
// Writes a model of random weights in the shape of a real one, so that the real one's speed can be measured without its
// weights.
//   winnow_random_model SHAPE f16|bf16|q8_0|q4_k_m|mxfp4 FILE [--layers N] [--tokenizer FILE] [--from FILE]
// llama.cpp's own quantization chooses the type of each tensor, and uses all cores. Memory and disk must hold the model
// in f16, unless it is quantized from an existing file.
#include <llama.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>

#include "program.h"
#include "support/tiny_gguf.h"

namespace {

using winnow::test::TinyModel;

/// Parameters of all shapes.
struct Shape {
  const char* architecture;
  int n_head;
  int n_head_kv;
  int head_dim;
  int n_layer;
  int n_embd;
  int n_ff;
  int n_vocab;
};

TinyModel of_shape(const Shape& shape) {
  TinyModel m = winnow::test::tiny_of_heads(shape.architecture, shape.n_head, shape.n_head_kv, shape.head_dim);
  m.n_layer = shape.n_layer;
  m.n_embd = shape.n_embd;
  m.n_ff = shape.n_ff;
  m.n_vocab = shape.n_vocab;
  return m;
}

/// A model with a separate output matrix.
TinyModel untied(const Shape& shape) {
  TinyModel m = of_shape(shape);
  m.tied = false;
  return m;
}

TinyModel llama2_7b() { return untied({"llama", 32, 32, 128, 32, 4096, 11008, 32000}); }
TinyModel mistral_7b() { return untied({"llama", 32, 8, 128, 32, 4096, 14336, 32000}); }
TinyModel llama31_8b() { return untied({"llama", 32, 8, 128, 32, 4096, 14336, 128256}); }
TinyModel qwen2_7b() { return untied({"qwen2", 28, 4, 128, 28, 3584, 18944, 152064}); }
/// With the vocabulary of SmolLM2, whose tokenizer `--tokenizer` can give it.
TinyModel llama32_1b() { return of_shape({"llama", 32, 8, 64, 16, 2048, 8192, 49152}); }
TinyModel qwen3_06b() { return of_shape({"qwen3", 16, 8, 128, 28, 1024, 3072, 151936}); }

TinyModel gemma3_1b() {
  TinyModel m = of_shape({"gemma3", 4, 1, 256, 26, 1152, 6912, 262144});
  m.keys = {{".attention.sliding_window", 512U}};
  return m;
}

TinyModel phi4_mini() {
  TinyModel m = of_shape({"phi3", 24, 8, 128, 32, 3072, 8192, 200064});
  m.n_rot = 96;
  return m;
}

/// Granite 3.1's mixture of experts: 3.3 billion weights, of which a token uses 0.8 billion.
TinyModel granite_3b_a800m() {
  TinyModel m = of_shape({"granitemoe", 24, 8, 64, 32, 1536, 512, 49152});
  m.n_expert = 40;
  m.n_expert_used = 8;
  m.n_ff_shared = 0;
  return m;
}

/// gpt-oss-20b with a small vocabulary.
TinyModel gpt_oss_20b() {
  TinyModel m = of_shape({"gpt-oss", 64, 8, 64, 24, 2880, 2880, 32000});
  m.n_ff_expert = 2880;
  m.n_expert = 32;
  m.n_expert_used = 4;
  m.keys = {{".attention.sliding_window", 128U}};
  return m;
}

const std::map<std::string, TinyModel (*)()> kShapes = {
    {"llama-2-7b", llama2_7b},    {"mistral-7b", mistral_7b},   {"qwen2-7b", qwen2_7b},
    {"llama-3.1-8b", llama31_8b}, {"llama-3.2-1b", llama32_1b}, {"gemma3-1b", gemma3_1b},
    {"qwen3-0.6b", qwen3_06b},    {"phi4-mini", phi4_mini},     {"granite-3b-a800m", granite_3b_a800m},
    {"gpt-oss-20b", gpt_oss_20b}};
const std::map<std::string, llama_ftype> kTypes = {{"f16", LLAMA_FTYPE_MOSTLY_F16},
                                                   {"bf16", LLAMA_FTYPE_MOSTLY_BF16},
                                                   {"q8_0", LLAMA_FTYPE_MOSTLY_Q8_0},
                                                   {"q4_k_m", LLAMA_FTYPE_MOSTLY_Q4_K_M},
                                                   {"mxfp4", LLAMA_FTYPE_MOSTLY_MXFP4_MOE}};

void write_whole(TinyModel model, ggml_type type, const std::string& path) {
  model.ctx_train = 131072;
  model.type = type;
  model.distinct = 1'000'003;  // a prime number, so that the rows of a matrix differ; drawing all takes minutes
  write_tiny_gguf(model, path);
}

void quantize(const std::string& whole, llama_ftype type, const std::string& path) {
  auto how = llama_model_quantize_default_params();
  how.ftype = type;
  if (llama_model_quantize(whole.c_str(), path.c_str(), &how) != 0)
    throw std::runtime_error("llama.cpp could not quantize " + whole);
}

/// Removes a file at the end of a scope.
struct Temporary {
  std::string path;
  ~Temporary() {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
  }
};

void write(const TinyModel& model, llama_ftype type, const std::string& path) {
  if (type == LLAMA_FTYPE_MOSTLY_F16) return write_whole(model, GGML_TYPE_F16, path);
  if (type == LLAMA_FTYPE_MOSTLY_BF16) return write_whole(model, GGML_TYPE_BF16, path);
  const Temporary whole{path + ".f16"};
  write_whole(model, GGML_TYPE_F16, whole.path);
  quantize(whole.path, type, path);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"a model of random weights"};
  std::string shape;
  llama_ftype type = LLAMA_FTYPE_MOSTLY_F16;
  std::string path;
  int layers = 0;
  std::string tokenizer;
  std::string whole;
  app.add_option("shape", shape)->required()->check(CLI::IsMember(kShapes));
  app.add_option("type", type)->required()->transform(CLI::CheckedTransformer(kTypes));
  app.add_option("file", path, "is made, and must not be there")->required()->check(CLI::NonexistentPath);
  auto* const first = app.add_option("--layers", layers, "only the first ones (default: all)");
  first->check(CLI::PositiveNumber);
  auto* const given =
      app.add_option("--tokenizer", tokenizer, "GGUF file with as many tokens, whose tokenizer it gets");
  given->check(CLI::ExistingFile);
  app.add_option("--from", whole, "quantize this f16 or bf16 model, which has the shape already")
      ->check(CLI::ExistingFile)
      ->excludes(first)
      ->excludes(given);
  return winnow::bench::run_program(app, argc, argv, [&] {
    if (!whole.empty()) return quantize(whole, type, path);
    TinyModel model = kShapes.at(shape)();
    if (layers > 0) model.n_layer = layers;
    model.tokenizer = tokenizer;
    model.name = shape + ", random, layers: " + std::to_string(model.n_layer);
    write(model, type, path);
  });
}
