// SPDX-License-Identifier: Apache-2.0
// Descriptions of GGUF files: the facts found by loading or, if winnow cannot run the file, its keys and the reason.
#include "winnow/describe.h"

#include <ggml-cpp.h>
#include <gguf.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "support/changed_gguf.h"
#include "support/temp.h"
#include "support/tiny_gguf.h"
#include "winnow/error.h"
#include "winnow/model.h"

namespace winnow::test {
namespace {

class Described : public testing::Test {
 protected:
  ModelDescription of(const TinyModel& model) const {
    write_tiny_gguf(model, path_);
    return describe_model(path_);
  }
  void set_text(const char* key, const char* value) const {
    ggml_context* data = nullptr;
    const gguf_context_ptr gguf(gguf_init_from_file(path_.c_str(), {false, &data}));
    const ggml_context_ptr owner(data);
    const gguf_context_ptr out(gguf_init_empty());
    gguf_set_kv(out.get(), gguf.get());
    gguf_set_val_str(out.get(), key, value);
    ASSERT_TRUE(gguf_write_to_file(out.get(), path_.c_str(), false));
  }
  std::size_t bytes_of_tensors() const {
    const gguf_context_ptr gguf(gguf_init_from_file(path_.c_str(), {true, nullptr}));
    std::size_t bytes = 0;
    for (std::int64_t i = 0; i < gguf_get_n_tensors(gguf.get()); ++i) bytes += gguf_get_tensor_size(gguf.get(), i);
    return bytes;
  }
  static void expect_in(const std::string& part, const std::string& whole) {
    EXPECT_NE(whole.find(part), std::string::npos) << whole;
  }

  TempFolder folder_;
  std::string path_ = folder_ / "tiny.gguf";
};

TEST_F(Described, a_model_is_what_it_is_when_it_is_loaded) {
  for (const auto& row : tiny_architectures()) {
    for (const auto type : {GGML_TYPE_F32, GGML_TYPE_Q4_0}) {
      SCOPED_TRACE(row.name);
      TinyModel model = tiny_of(std::string(row.name));
      model.type = type;
      const auto described = of(model);
      const auto loaded = Model::load(path_);
      const ModelInfo& is = described.info;
      const ModelInfo& expected = loaded->info();
      EXPECT_EQ(described.refusal, "");
      EXPECT_EQ(described.window, expected.window());
      EXPECT_EQ(described.parts, 1);
      EXPECT_EQ(std::tie(is.path, is.arch, is.name, is.weight_type, is.n_layer, is.n_embd, is.n_head),
                std::tie(expected.path, expected.arch, expected.name, expected.weight_type, expected.n_layer,
                         expected.n_embd, expected.n_head));
      EXPECT_EQ(
          std::tie(is.n_head_kv, is.head_dim, is.n_expert, is.n_expert_used, is.n_vocab, is.ctx_train, is.context),
          std::tie(expected.n_head_kv, expected.head_dim, expected.n_expert, expected.n_expert_used, expected.n_vocab,
                   expected.ctx_train, expected.context));
      EXPECT_EQ(std::tie(is.n_params, is.weight_bytes, is.kv_bytes_per_token, is.layers),
                std::tie(expected.n_params, expected.weight_bytes, expected.kv_bytes_per_token, expected.layers));
    }
  }
}

TEST_F(Described, an_unknown_architecture_by_the_usual_keys) {
  TinyModel model;
  model.arch = "mamba";
  model.n_expert = 8;
  model.type = GGML_TYPE_Q4_0;
  model.keys = {{".attention.sliding_window", 16U}};
  const auto d = of(model);
  EXPECT_EQ(d.refusal.find(path_ + ": architecture 'mamba' is not supported; winnow supports llama, qwen2,"), 0U);
  EXPECT_EQ(std::tie(d.info.arch, d.info.name, d.info.weight_type), std::tuple("mamba", "tiny", "q4_0"));
  EXPECT_EQ(std::tie(d.info.n_layer, d.info.n_embd, d.info.n_head, d.info.n_head_kv, d.info.head_dim),
            std::tuple(2, 64, 4, 2, 64));
  EXPECT_EQ(std::tie(d.info.n_expert, d.info.n_expert_used, d.info.n_vocab, d.info.context, d.window),
            std::tuple(8, 2, 288, 256, 16));
  EXPECT_EQ(d.info.weight_bytes, bytes_of_tensors());
}

TEST_F(Described, an_embedding_matrix_that_is_the_output_too_is_held_once) {
  const std::size_t held = of({}).info.weight_bytes;  // f32 matrices are not repacked
  EXPECT_EQ(held, bytes_of_tensors());
}

TEST_F(Described, a_key_or_a_tensor_is_the_reason) {
  TinyModel model;
  model.keys = {{".attn_logit_softcapping", 50.0F}};
  expect_in("key llama.attn_logit_softcapping is not supported", of(model).refusal);
  model = {};
  of(model);
  copy_gguf(path_, folder_ / "renamed.gguf", {.names = {{"blk.1.ffn_up", "blk.1.ffn_uq"}}});
  expect_in("tensor blk.1.ffn_up.weight is missing", describe_model(folder_ / "renamed.gguf").refusal);
  model.n_head_kv = 3;
  const auto heads = of(model);
  expect_in("4 query heads cannot share 3 KV heads", heads.refusal);
  EXPECT_EQ(heads.info.n_head_kv, 3);
  EXPECT_THROW(Model::load(path_), ModelError);
}

TEST_F(Described, files_that_are_no_language_models) {
  of({});
  const std::string begin = path_ + " is not a language model but ";
  set_text("general.type", "model");
  set_text("general.architecture", "clip");
  EXPECT_EQ(describe_model(path_).refusal.find(begin + "a projector for images or sound (clip, mmproj)"), 0U);
  of({});
  for (const char* type : {"mmproj", "adapter", "imatrix"}) {
    set_text("general.type", type);
    const auto d = describe_model(path_);
    EXPECT_EQ(d.refusal.find(begin), 0U) << d.refusal;
    EXPECT_EQ(d.info.arch, "llama");
  }
}

TEST_F(Described, a_file_that_is_cut) {
  of({});
  std::filesystem::resize_file(path_, std::filesystem::file_size(path_) / 2);
  const auto d = describe_model(path_);
  expect_in("truncated: tensor ", d.refusal);
  EXPECT_EQ(d.info.n_layer, 2);
  std::filesystem::resize_file(path_, 200);
  EXPECT_THROW(describe_model(path_), ModelError);
  EXPECT_THROW(describe_model(folder_ / "absent.gguf"), ModelError);
}

}  // namespace
}  // namespace winnow::test
