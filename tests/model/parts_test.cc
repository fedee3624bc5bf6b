// SPDX-License-Identifier: Apache-2.0
// A model in several files: read as one, or refused with one sentence.
#include <ggml-cpp.h>
#include <gguf.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "benchmark/llama_cpp.h"
#include "network/network.h"
#include "support/rounding.h"
#include "support/split_gguf.h"
#include "support/temp.h"
#include "winnow/describe.h"
#include "winnow/error.h"
#include "winnow/model.h"

namespace winnow::test {
namespace {

constexpr int kVocabulary = 288;

class Parts : public testing::Test {
 protected:
  Parts() { write_tiny_gguf(model_, whole_); }

  std::vector<std::string> split(const Split& how = {}) const { return split_gguf(whole_, folder_ / "part", how); }
  std::vector<std::string> split(const std::function<void(int, gguf_context*)>& edit) const {
    Split how;
    how.edit = edit;
    return split(how);
  }
  static std::string error_of(const std::string& path) {
    try {
      Model::load(path);
    } catch (const ModelError& error) {
      return error.what();
    }
    return "";
  }

  TinyModel model_ = tiny_of("qwen2");
  TempFolder folder_;
  std::string whole_ = folder_ / "whole.gguf";
};

TEST_F(Parts, have_the_logits_that_libllama_finds_in_them) {
  const auto tokens = random_tokens(30, kVocabulary, 7);
  for (const bool keys_alone : {false, true}) {
    for (const int count : {2, 5}) {
      const std::string first = split({.parts = count, .keys_alone = keys_alone}).front();
      benchmark::LlamaOptions options;
      options.context = 256;
      options.threads = 1;
      options.kv_type = ElementType::f32;
      const auto expected = benchmark::Llama(first, options).decode_all(tokens);
      const auto got = Network(first, 1, 1, 30).prefill(tokens, 30);
      EXPECT_LT(worst_row(got, expected, kVocabulary), tolerance_of(model_));
      EXPECT_EQ(got, Network(whole_, 1, 1, 30).prefill(tokens, 30));
    }
  }
}

TEST_F(Parts, are_one_model) {
  const auto paths = split();
  const auto whole = Model::load(whole_);
  const auto parts = Model::load(paths.front());
  EXPECT_EQ(parts->info().n_params, whole->info().n_params);
  EXPECT_EQ(parts->info().weight_bytes, whole->info().weight_bytes);
  EXPECT_EQ(parts->vocab().tokenize("some text"), whole->vocab().tokenize("some text"));
  const auto described = describe_model(paths.front());
  EXPECT_EQ(described.refusal, "");
  EXPECT_EQ(described.parts, 3);
  EXPECT_EQ(described.info.n_params, whole->info().n_params);
}

TEST_F(Parts, all_of_them_tell_a_model_from_others) {
  const auto paths = split();
  std::set<std::uint64_t> hashes = {Model::load(paths.front())->hash()};
  for (const auto& path : paths) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(-4, std::ios::end);  // of a weight
    const int byte = file.get();
    file.seekp(-4, std::ios::end);
    file.put(static_cast<char>(byte ^ 1));
    file.close();
    EXPECT_TRUE(hashes.insert(Model::load(paths.front())->hash()).second) << path;
  }
}

TEST_F(Parts, others_than_the_first_are_refused_by_its_name) {
  const auto paths = split();
  EXPECT_EQ(error_of(paths[1]), paths[1] + " is part 2 of 3 of a model: give the first part, " + paths[0]);
  const auto described = describe_model(paths[2]);
  EXPECT_EQ(described.refusal, paths[2] + " is part 3 of 3 of a model: give the first part, " + paths[0]);
  EXPECT_EQ(described.parts, 3);
  std::filesystem::rename(paths[1], folder_ / "other.gguf");
  EXPECT_EQ(error_of(folder_ / "other.gguf"),
            (folder_ / "other.gguf") + " is part 2 of 3 of a model: give the first part");
  EXPECT_EQ(error_of(paths[0]), "cannot open the model " + paths[1] + ": No such file or directory");
}

TEST_F(Parts, are_found_by_their_names) {
  const auto paths = split();
  std::filesystem::rename(paths[0], folder_ / "first.gguf");
  EXPECT_EQ(error_of(folder_ / "first.gguf"), (folder_ / "first.gguf") +
                                                  " is part 1 of 3 of a model: its name must end with "
                                                  "-00001-of-00003.gguf, so that the other parts can be found");
}

TEST_F(Parts, that_do_not_belong_together) {
  const auto wrong_key = [&](const char* key, std::uint16_t value) {
    return error_of(split([=](int part, gguf_context* gguf) {
                      if (part == 1) gguf_set_val_u16(gguf, key, value);
                    }).front());
  };
  const std::string first = folder_ / "part-00001-of-00003.gguf";
  const std::string second = folder_ / "part-00002-of-00003.gguf";
  const std::string rest = ": it does not belong to " + first;
  EXPECT_EQ(wrong_key("split.no", 2), second + ": split.no is 2, expected 1" + rest);
  EXPECT_EQ(wrong_key("split.count", 4), second + ": split.count is 4, expected 3" + rest);
  EXPECT_EQ(wrong_key("split.tensors.count", 7), second + ": split.tensors.count is 7, expected 26" + rest);
  EXPECT_EQ(error_of(split([](int part, gguf_context* gguf) {
                       if (part == 1) gguf_remove_key(gguf, "split.no");
                     }).front()),
            second + ": split.no is missing, expected 1" + rest);
  const auto of_all = [&](std::int32_t tensors) {
    return error_of(
        split([=](int, gguf_context* gguf) { gguf_set_val_i32(gguf, "split.tensors.count", tensors); }).front());
  };
  EXPECT_EQ(of_all(26), "");
  EXPECT_EQ(of_all(27), first + ": the 3 parts of the model have 26 tensors, but split.tensors.count is 27");
  EXPECT_EQ(error_of(split([](int part, gguf_context* gguf) {
                       if (part == 0) gguf_set_val_u32(gguf, "split.count", 70000);
                     }).front()),
            first + ": split.no is 0 and split.count is 70000, which is not possible for a part of a model");
}

TEST_F(Parts, of_two_models) {
  const auto paths = split();
  TinyModel wider = model_;
  wider.n_ff += 32;
  write_tiny_gguf(wider, whole_);
  const auto others = split_gguf(whole_, folder_ / "other");
  std::filesystem::rename(others[1], paths[1]);
  EXPECT_EQ(error_of(paths[0]).find(paths[1] + ": tensor blk.0."), 0U) << error_of(paths[0]);
  const ggml_context_ptr context(ggml_init({1U << 16U, nullptr, false}));
  ggml_tensor* const norm = ggml_new_tensor_1d(context.get(), GGML_TYPE_F32, 8);
  ggml_set_name(norm, "output_norm.weight");
  EXPECT_EQ(error_of(split([&](int part, gguf_context* gguf) {
                       if (part == 2) gguf_add_tensor(gguf, norm);
                     }).front()),
            "tensor output_norm.weight is both in " + paths[0] + " and in " + paths[2]);
}

TEST_F(Parts, that_are_cut) {
  const auto paths = split();
  std::filesystem::resize_file(paths[2], std::filesystem::file_size(paths[2]) - 64);
  EXPECT_EQ(error_of(paths[0]).find(paths[2] + ": truncated: tensor "), 0U) << error_of(paths[0]);
}

}  // namespace
}  // namespace winnow::test
