// SPDX-License-Identifier: Apache-2.0
// Checks tiny files with libllama: it loads those of every architecture, and everything in them changes its logits.
#include "support/tiny_gguf.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <random>

#include "benchmark/llama_cpp.h"
#include "support/named_model.h"
#include "support/random_tokens.h"
#include "support/rounding.h"
#include "support/spoilt_gguf.h"
#include "support/temp.h"

namespace winnow::test {
namespace {

/// Contexts are made for multiples of 256 tokens.
constexpr int kContext = 256;

std::vector<float> logits_of(const std::string& path, int context = kContext) {
  benchmark::LlamaOptions options;
  options.context = context;
  options.threads = 1;
  options.kv_type = ElementType::f32;
  return benchmark::Llama(path, options).decode_all(random_tokens(24, 288, 7));
}

std::vector<float> logits_of(const TinyModel& model, int context = kContext) {
  const TempFolder folder;
  write_tiny_gguf(model, folder / "tiny.gguf");
  return logits_of(folder / "tiny.gguf", context);
}

/// The difference in the L2 norm, relative to the second.
double difference(const std::vector<float>& one, const std::vector<float>& other) {
  double squares = 0;
  double norm = 0;
  for (std::size_t i = 0; i < one.size(); ++i) {
    squares += std::pow(static_cast<double>(one[i]) - other[i], 2);
    norm += std::pow(static_cast<double>(other[i]), 2);
  }
  return std::sqrt(squares / norm);
}

/// Far above rounding.
constexpr double kDiffers = 1e-3;

std::vector<NamedModel> all_cases() {
  std::vector<NamedModel> out;
  const auto add = [&](const TinyModel& model, const std::string& suffix) {
    std::string name = model.arch + suffix;
    std::replace(name.begin(), name.end(), '-', '_');
    out.push_back({name, model});
  };
  for (const auto& row : tiny_architectures()) {
    const TinyModel model = tiny_of(std::string(row.name));
    add(model, "");
    TinyModel with_biases = model;
    with_biases.optional_biases = true;
    if (row.optional_biases != Biases{}) add(with_biases, "_with_biases");
    TinyModel untied = model;
    untied.tied = false;
    if (row.output == OutputMatrix::optional) add(untied, "_untied");
    TinyModel other_qkv = model;
    other_qkv.qkv = row.fused_qkv ? QkvTensors::separate : QkvTensors::fused;
    add(other_qkv, row.fused_qkv ? "_separate" : "_fused");
  }
  for (const char* arch : {"llama", "granite", "exaone4"}) {
    TinyModel model = tiny_of(arch);
    model.rope_factors = true;
    add(model, "_rope_factors");
  }
  for (const char* arch : {"llama", "granite", "granite_swa", "mistral3", "gemma4"}) {
    TinyModel model = tiny_of(arch);
    model.n_expert = 8;
    add(model, "_experts");
  }
  TinyModel embeddings = tiny_of("gemma4");
  embeddings.layer_embedding = 16;
  add(embeddings, "_layer_embeddings");
  embeddings.shared_kv = 3;
  add(embeddings, "_shared_keys");
  TinyModel deep = tiny_of("command-r");
  deep.n_layer = tiny_architecture("command-r").qk_norm_from_layers;
  add(deep, "_deep");
  TinyModel half = tiny_of("phi3");
  half.n_rot = half.head_dim / 2;
  add(half, "_half_rotated");
  return out;
}

class TinyFile : public testing::TestWithParam<NamedModel> {
 protected:
  TinyFile() { write_tiny_gguf(GetParam().model, path_); }

  /// All tensors outside blocks, and those of the first and the last block.
  std::vector<std::string> tensors() const {
    const std::string last = std::to_string(GetParam().model.n_layer - 1);
    const gguf_context_ptr gguf(gguf_init_from_file(path_.c_str(), {true, nullptr}));
    std::vector<std::string> out;
    for (std::int64_t i = 0; i < gguf_get_n_tensors(gguf.get()); ++i) {
      const std::string name = gguf_get_tensor_name(gguf.get(), i);
      if (!name.starts_with("blk.") || name.starts_with("blk.0.") || name.starts_with("blk." + last + "."))
        out.push_back(name);
    }
    return out;
  }

  std::vector<char> bytes_of(const std::string& tensor) const {
    const gguf_context_ptr gguf(gguf_init_from_file(path_.c_str(), {true, nullptr}));
    const auto id = gguf_find_tensor(gguf.get(), tensor.c_str());
    std::vector<char> out(gguf_get_tensor_size(gguf.get(), id));
    std::ifstream file(path_, std::ios::binary);
    file.seekg(static_cast<std::streamoff>(gguf_get_data_offset(gguf.get()) + gguf_get_tensor_offset(gguf.get(), id)));
    file.read(out.data(), static_cast<std::streamsize>(out.size()));
    return out;
  }

  /// The values of an f32 tensor in reverse order; a single value is negated.
  std::vector<char> reversed(const std::string& tensor) const {
    const auto bytes = bytes_of(tensor);
    std::vector<char> out;
    if (bytes.size() == sizeof(float)) {
      constexpr char kSign = '\x80';
      out = bytes;
      out.back() = static_cast<char>(out.back() ^ kSign);
      return out;
    }
    for (std::size_t end = bytes.size(); end > 0; end -= sizeof(float))
      out.insert(out.end(), bytes.begin() + static_cast<std::ptrdiff_t>(end - sizeof(float)),
                 bytes.begin() + static_cast<std::ptrdiff_t>(end));
    return out;
  }

  TempFolder folder_;
  std::string path_ = folder_ / "tiny.gguf";
};

TEST_P(TinyFile, is_read_by_libllama_and_every_tensor_of_it_matters) {
  const auto logits = logits_of(path_);
  for (const float logit : logits) ASSERT_TRUE(std::isfinite(logit));
  for (const auto& tensor : tensors()) {
    const SpoiltBytes spoilt(path_, tensor, 0, reversed(tensor));
    EXPECT_GT(difference(logits_of(path_), logits), kDiffers) << tensor;
  }
}

INSTANTIATE_TEST_SUITE_P(all, TinyFile, testing::ValuesIn(all_cases()),
                         [](const auto& test) { return test.param.name; });

/// Another value: half or twice a number, a negated flag, or another kind of RoPE scaling.
decltype(TinyKey::value) another(const decltype(TinyKey::value)& value) {
  if (const auto* whole = std::get_if<std::uint32_t>(&value)) return *whole / 2;
  if (const auto* flag = std::get_if<bool>(&value)) return !*flag;
  if (const auto* number = std::get_if<float>(&value)) return 2 * *number;
  if (const auto* flags = std::get_if<std::vector<bool>>(&value)) {
    auto flipped = *flags;
    flipped.flip();
    return flipped;
  }
  return std::string("linear");
}

TEST(TinyKeys, of_an_architecture_change_its_logits) {
  for (const auto& row : tiny_architectures()) {
    for (const auto& key : row.keys) {
      const TinyModel model = tiny_of(std::string(row.name));
      TinyModel other = model;
      other.keys = {{key.name, another(key.value)}};
      EXPECT_GT(difference(logits_of(other), logits_of(model)), kDiffers) << row.name << key.name;
    }
  }
}

TEST(TinyKeys, may_be_flags) {
  TinyModel model = tiny_of("granite");
  const auto rotated = logits_of(model);
  model.keys = {{".rope.scaling.finetuned", false}};
  EXPECT_GT(difference(logits_of(model), rotated), kDiffers) << "without RoPE";
}

TEST(TinyFusedMatrices, are_the_separate_ones) {
  for (const auto& row : tiny_architectures()) {
    TinyModel model = tiny_of(std::string(row.name));
    model.optional_biases = true;
    model.all_values = true;
    model.qkv = QkvTensors::separate;
    const auto separate = logits_of(model);
    model.qkv = QkvTensors::fused;
    EXPECT_LT(difference(logits_of(model), separate), f32_tolerance(model.n_layer)) << row.name;
  }
}

TinyModel scaled(const TinyScaling& scaling) {
  TinyModel model = tiny_of("phi3");
  model.scaling = scaling;
  return model;
}

TEST(TinyRope, schemes_differ_from_each_other) {
  const std::vector<TinyScaling> schemes = {{},
                                            {"linear", 4},
                                            {"linear", 4, 0, 1.25F},
                                            {"yarn", 4, 64},
                                            {"yarn", 4, 128},
                                            {"yarn", 8, 64},
                                            {"yarn", 4, 64, 1.25F}};
  std::vector<std::vector<float>> logits;
  for (const auto& scheme : schemes) logits.push_back(logits_of(scaled(scheme)));
  for (std::size_t i = 0; i < schemes.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) EXPECT_GT(difference(logits[i], logits[j]), kDiffers) << i << " and " << j;
  }
}

TEST(TinyRope, without_a_scaling_has_no_factor) { EXPECT_EQ(logits_of(scaled({"none", 4})), logits_of(scaled({}))); }

/// libllama chooses the factors by the size of its context. Phi-3's files name no scaling, Llama's and Granite's do.
TEST(TinyRope, has_factors_for_long_contexts_and_for_short_ones) {
  for (const char* arch : {"phi3", "llama", "granite"}) {
    TinyModel model = tiny_of(arch);
    const auto plain = logits_of(model);
    model.longrope = true;
    model.scaling.original_context = kContext;
    if (model.arch != "phi3") model.scaling.type = "longrope";
    const auto as_short = logits_of(model, kContext);
    const auto as_long = logits_of(model, 2 * kContext);
    EXPECT_GT(difference(as_short, plain), kDiffers) << arch;
    EXPECT_GT(difference(as_long, plain), kDiffers) << arch;
    EXPECT_GT(difference(as_long, as_short), kDiffers) << arch;
    model.scaling.attn_factor = 1.25F;
    EXPECT_GT(difference(logits_of(model), as_short), kDiffers) << arch;
  }
}

}  // namespace
}  // namespace winnow::test
