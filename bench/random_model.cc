// SPDX-License-Identifier: Apache-2.0
// Writes a model of random weights in the shape of one that people run, so that its speed can be measured without its
// weights.
//   winnow_random_model SHAPE f16|q8_0|q4_k_m|mxfp4 FILE [--layers N]
// llama.cpp's own quantization chooses the type of each tensor. Memory and disk must hold the model in f16.
#include <llama.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>

#include "program.h"
#include "support/tiny_gguf.h"

namespace {

using winnow::test::TinyModel;

TinyModel gemma3_1b() {
  TinyModel m = winnow::test::tiny_of_heads("gemma3", 4, 1, 256);
  m.n_layer = 26;
  m.n_embd = 1152;
  m.n_ff = 6912;
  m.n_vocab = 262144;
  m.keys = {{".attention.sliding_window", 512U}};
  return m;
}

TinyModel qwen3_06b() {
  TinyModel m = winnow::test::tiny_of_heads("qwen3", 16, 8, 128);
  m.n_layer = 28;
  m.n_embd = 1024;
  m.n_ff = 3072;
  m.n_vocab = 151936;
  return m;
}

TinyModel phi4_mini() {
  TinyModel m = winnow::test::tiny_of_heads("phi3", 24, 8, 128);
  m.n_layer = 32;
  m.n_rot = 96;
  m.n_ff = 8192;
  m.n_vocab = 200064;
  return m;
}

/// Granite 3.1's mixture: 3.3 billion weights, of which a token passes 0.8 billion.
TinyModel granite_3b_a800m() {
  TinyModel m = winnow::test::tiny_of_heads("granitemoe", 24, 8, 64);
  m.n_layer = 32;
  m.n_embd = 1536;
  m.n_ff = 512;
  m.n_expert = 40;
  m.n_expert_used = 8;
  m.n_ff_shared = 0;
  m.n_vocab = 49152;
  return m;
}

/// gpt-oss-20b with a small vocabulary.
TinyModel gpt_oss_20b() {
  TinyModel m = winnow::test::tiny_of_heads("gpt-oss", 64, 8, 64);
  m.n_layer = 24;
  m.n_embd = 2880;
  m.n_ff = m.n_ff_expert = 2880;
  m.n_expert = 32;
  m.n_expert_used = 4;
  m.n_vocab = 32000;
  m.keys = {{".attention.sliding_window", 128U}};
  return m;
}

/// A model of 32 layers with heads of 128, as most of 7 to 8 billion weights are.
TinyModel of_32_layers(const char* architecture, int n_head_kv, int n_ff, int n_vocab) {
  TinyModel m = winnow::test::tiny_of_heads(architecture, 32, n_head_kv, 128);
  m.n_layer = 32;
  m.n_embd = 4096;
  m.n_ff = n_ff;
  m.n_vocab = n_vocab;
  m.tied = false;
  return m;
}

TinyModel llama2_7b() { return of_32_layers("llama", 32, 11008, 32000); }
TinyModel mistral_7b() { return of_32_layers("llama", 8, 14336, 32000); }
TinyModel llama31_8b() { return of_32_layers("llama", 8, 14336, 128256); }

TinyModel qwen2_7b() {
  TinyModel m = winnow::test::tiny_of_heads("qwen2", 28, 4, 128);
  m.n_layer = 28;
  m.n_embd = 3584;
  m.n_ff = 18944;
  m.n_vocab = 152064;
  m.tied = false;
  return m;
}

const std::map<std::string, TinyModel (*)()> kShapes = {
    {"llama-2-7b", llama2_7b},   {"mistral-7b", mistral_7b},
    {"qwen2-7b", qwen2_7b},      {"llama-3.1-8b", llama31_8b},
    {"gemma3-1b", gemma3_1b},    {"qwen3-0.6b", qwen3_06b},
    {"phi4-mini", phi4_mini},    {"granite-3b-a800m", granite_3b_a800m},
    {"gpt-oss-20b", gpt_oss_20b}};
const std::map<std::string, llama_ftype> kTypes = {{"f16", LLAMA_FTYPE_MOSTLY_F16},
                                                   {"q8_0", LLAMA_FTYPE_MOSTLY_Q8_0},
                                                   {"q4_k_m", LLAMA_FTYPE_MOSTLY_Q4_K_M},
                                                   {"mxfp4", LLAMA_FTYPE_MOSTLY_MXFP4_MOE}};

void write(TinyModel model, llama_ftype type, const std::string& path) {
  model.ctx_train = 32768;
  model.type = GGML_TYPE_F16;
  const std::string whole = type == LLAMA_FTYPE_MOSTLY_F16 ? path : path + ".f16";
  write_tiny_gguf(model, whole);
  if (whole == path) return;
  auto how = llama_model_quantize_default_params();
  how.ftype = type;
  const auto failed = llama_model_quantize(whole.c_str(), path.c_str(), &how);
  std::filesystem::remove(whole);
  if (failed != 0) throw std::runtime_error("llama.cpp could not quantize " + whole);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"a model of random weights"};
  std::string shape;
  llama_ftype type = LLAMA_FTYPE_MOSTLY_F16;
  std::string path;
  int layers = 0;
  app.add_option("shape", shape)->required()->check(CLI::IsMember(kShapes));
  app.add_option("type", type)->required()->transform(CLI::CheckedTransformer(kTypes));
  app.add_option("file", path, "is made, and must not be there")->required()->check(CLI::NonexistentPath);
  app.add_option("--layers", layers, "only the first ones (default: all)")->check(CLI::PositiveNumber);
  return winnow::bench::run_program(app, argc, argv, [&] {
    TinyModel model = kShapes.at(shape)();
    if (layers > 0) model.n_layer = layers;
    write(std::move(model), type, path);
  });
}
