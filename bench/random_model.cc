// SPDX-License-Identifier: Apache-2.0
// Writes a model of random weights in the shape of one that people run, so that its speed can be measured without its
// weights.
//   winnow_random_model gemma3-1b|qwen3-0.6b|phi4-mini|granite-3b-a800m|gpt-oss-2-layers f16|q8_0|q4_k_m|mxfp4 FILE
// llama.cpp's own quantization chooses the type of each tensor. The largest takes 8 GB of memory, and as many of disk.
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

/// Two of the 24 layers of gpt-oss-20b, one of each kind, with a small vocabulary.
TinyModel gpt_oss_2_layers() {
  TinyModel m = winnow::test::tiny_of_heads("gpt-oss", 64, 8, 64);
  m.n_layer = 2;
  m.n_embd = 2880;
  m.n_ff = m.n_ff_expert = 2880;
  m.n_expert = 32;
  m.n_expert_used = 4;
  m.n_vocab = 32000;
  m.keys = {{".attention.sliding_window", 128U}};
  return m;
}

const std::map<std::string, TinyModel (*)()> kShapes = {{"gemma3-1b", gemma3_1b},
                                                        {"qwen3-0.6b", qwen3_06b},
                                                        {"phi4-mini", phi4_mini},
                                                        {"granite-3b-a800m", granite_3b_a800m},
                                                        {"gpt-oss-2-layers", gpt_oss_2_layers}};
const std::map<std::string, llama_ftype> kTypes = {{"f16", LLAMA_FTYPE_MOSTLY_F16},
                                                   {"q8_0", LLAMA_FTYPE_MOSTLY_Q8_0},
                                                   {"q4_k_m", LLAMA_FTYPE_MOSTLY_Q4_K_M},
                                                   {"mxfp4", LLAMA_FTYPE_MOSTLY_MXFP4_MOE}};

void write(const std::string& shape, llama_ftype type, const std::string& path) {
  TinyModel model = kShapes.at(shape)();
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
  app.add_option("shape", shape)->required()->check(CLI::IsMember(kShapes));
  app.add_option("type", type)->required()->transform(CLI::CheckedTransformer(kTypes));
  app.add_option("file", path, "is made, and must not be there")->required()->check(CLI::NonexistentPath);
  return winnow::bench::run_program(app, argc, argv, [&] { write(shape, type, path); });
}
