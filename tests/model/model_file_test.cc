// SPDX-License-Identifier: Apache-2.0
// Headers that claim more than ggml can do or the file can hold; and that the file is opened once.
#include <ggml-cpp.h>
#include <gguf.h>
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "engine/model_impl.h"
#include "support/temp.h"
#include "support/tiny_gguf.h"
#include "winnow/error.h"
#include "winnow/model.h"
#include "winnow/session.h"

namespace winnow {
namespace {

class ModelFileTest : public testing::Test {
 protected:
  ModelFileTest() { write(); }

  void write(const std::function<void(test::TinyModel&)>& change = [](test::TinyModel&) {}) const {
    test::TinyModel tiny;
    change(tiny);
    test::write_tiny_gguf(tiny, path_);
  }

  /// Changes the GGUF file with ggml's own functions.
  void edit(const std::function<void(gguf_context*)>& change) const {
    ggml_context* data = nullptr;
    const gguf_context_ptr read(gguf_init_from_file(path_.c_str(), {false, &data}));
    const ggml_context_ptr owner(data);
    const gguf_context_ptr written(gguf_init_empty());
    gguf_set_kv(written.get(), read.get());
    for (auto* t = ggml_get_first_tensor(data); t != nullptr; t = ggml_get_next_tensor(data, t)) {
      if (gguf_find_tensor(read.get(), t->name) >= 0) gguf_add_tensor(written.get(), t);
    }
    change(written.get());
    ASSERT_TRUE(gguf_write_to_file(written.get(), path_.c_str(), false));
  }

  /// The error of loading the model and reading a few tokens; empty: none.
  std::string error() const {
    try {
      Session session(Model::load(path_), {1, Precision::automatic, 8});
      CacheOptions full;
      const std::array<Token, 3> tokens = {5, 6, 7};
      session.prefill(tokens, std::span(&full, 1));
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  void expect_error(const std::string& part) const {
    const std::string said = error();
    EXPECT_NE(said.find(part), std::string::npos) << "expected: " << part << "\nsaid: " << said;
  }

  test::TempFolder folder_;
  std::string path_ = folder_ / "model.gguf";
};

/// Counts how often a file is opened, by inotify.
class Opens {
 public:
  explicit Opens(const std::string& path) : fd_(inotify_init1(IN_NONBLOCK)) {
    inotify_add_watch(fd_, path.c_str(), IN_OPEN | IN_CLOSE);
  }
  Opens(const Opens&) = delete;
  Opens& operator=(const Opens&) = delete;
  ~Opens() { close(fd_); }

  int count() const {
    alignas(inotify_event) std::array<char, 4096> buffer{};
    int out = 0;
    for (ssize_t size = read(fd_, buffer.data(), buffer.size()); size > 0;
         size = read(fd_, buffer.data(), buffer.size())) {
      for (ssize_t at = 0; at < size;) {
        const auto* const event = reinterpret_cast<const inotify_event*>(buffer.data() + at);
        if ((event->mask & IN_OPEN) != 0) ++out;
        at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
      }
    }
    return out;
  }

 private:
  int fd_;
};

TEST_F(ModelFileTest, it_is_opened_once) {
  const Opens opens(path_);
  const auto model = Model::load(path_);
  model->hash();
  EXPECT_FALSE(model->vocab().tokenize("word").empty());
  EXPECT_EQ(opens.count(), 1);
}

TEST_F(ModelFileTest, every_type_of_matrix_is_multiplied_or_refused_by_name) {
  // Types without a dot product in ggml: those that only pair with others, and plain integers and doubles.
  const std::set<std::string> refused = {"q8_1", "q8_K", "i8", "i16", "i32", "i64", "f64"};
  std::set<std::string> seen;
  const std::vector<char> zeros(std::size_t{1} << 20U);
  for (const char* tensor : {"blk.0.attn_q.weight", "token_embd.weight"}) {
    for (int i = 0; i < GGML_TYPE_COUNT; ++i) {
      const auto type = static_cast<ggml_type>(i);
      if (ggml_blck_size(type) == 0 || ggml_type_size(type) == 0) continue;  // removed types
      write([](test::TinyModel& m) { m.n_embd = 256; });
      edit([&](gguf_context* gguf) {
        gguf_set_tensor_type(gguf, tensor, type);
        gguf_set_tensor_data(gguf, tensor, zeros.data());
      });
      const std::string name = ggml_type_name(type);
      if (refused.contains(name)) {
        seen.insert(name);
        expect_error("tensor " + std::string(tensor) + " is of type " + name +
                     ", for which ggml has no matrix product");
      } else {
        EXPECT_EQ(error(), "") << tensor << ": " << name;
      }
    }
  }
  EXPECT_EQ(seen, refused);
}

TEST_F(ModelFileTest, hyper_parameters_that_are_no_numbers) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  struct Case {
    std::string key;
    float value;
    std::string said;
  };
  for (const auto& [key, value, said] :
       {Case{"llama.attention.layer_norm_rms_epsilon", NAN, "is nan"},
        Case{"llama.attention.layer_norm_rms_epsilon", kInfinity, "is inf"},
        Case{"llama.attention.layer_norm_rms_epsilon", -1e-5F, "is -1e-05, expected 0 to 1"},
        Case{"llama.rope.freq_base", NAN, "is nan"}, Case{"llama.rope.freq_base", -kInfinity, "is -inf"},
        Case{"llama.rope.freq_base", -10000, "is -10000"}, Case{"llama.rope.scaling.factor", NAN, "is nan"},
        Case{"llama.rope.scaling.factor", 1e-30F, "llama.rope.scaling.factor is 1e-30"},
        Case{"llama.attn_logit_softcapping", NAN, "is nan"}, Case{"llama.some.later.key", NAN, "is nan"}}) {
    write();
    edit([&](gguf_context* gguf) { gguf_set_val_f32(gguf, key.c_str(), value); });
    expect_error(key);
    expect_error(said);
  }
  write();
  edit([](gguf_context* gguf) {
    gguf_set_val_u64(gguf, "llama.attention.head_count_kv", (std::uint64_t{1} << 32U) + 2);
  });
  expect_error("key llama.attention.head_count_kv is 4294967298, expected 1 to");
  write();
  const std::array<double, 3> array = {1, 2, NAN};
  edit([&](gguf_context* gguf) {
    gguf_set_arr_data(gguf, "llama.per.layer", GGUF_TYPE_FLOAT64, array.data(), array.size());
  });
  expect_error("key llama.per.layer is nan, expected a finite number");
  write();
  edit([&](gguf_context* gguf) { gguf_set_val_f32(gguf, "general.quality", NAN); });
  EXPECT_EQ(error(), "");  // winnow does not use this key
}

TEST_F(ModelFileTest, numbers_of_tensors_and_scores_that_are_none) {
  const std::vector<float> nothing(32, 0.0F);
  write([](test::TinyModel& m) { m.rope_factors = true; });
  edit([&](gguf_context* gguf) { gguf_set_tensor_data(gguf, "rope_freqs.weight", nothing.data()); });
  expect_error("rope_freqs.weight");
  write();
  std::vector<float> scores(288, 0.0F);
  scores[17] = NAN;
  edit([&](gguf_context* gguf) {
    gguf_set_arr_data(gguf, "tokenizer.ggml.scores", GGUF_TYPE_FLOAT32, scores.data(), scores.size());
  });
  expect_error("the score of token 17 is not a number");
}

/// The last tokens are pieces made by merges; other text is spelled in bytes.
TEST_F(ModelFileTest, tokenizers_that_merge_pieces_and_fall_back_on_bytes) {
  std::vector<const char*> merges = {"a b", "\u2581 ab"};
  const std::vector<std::string> pieces = {"a", "b", "ab", "\u2581", "\u2581ab"};
  const auto become = [&](gguf_context* gguf) {
    const auto key = gguf_find_key(gguf, "tokenizer.ggml.tokens");
    std::vector<std::string> tokens;
    for (std::size_t i = 0; i < gguf_get_arr_n(gguf, key); ++i) tokens.emplace_back(gguf_get_arr_str(gguf, key, i));
    std::copy(pieces.begin(), pieces.end(), tokens.end() - std::ssize(pieces));
    std::vector<const char*> all;
    for (const auto& token : tokens) all.push_back(token.c_str());
    gguf_set_arr_str(gguf, "tokenizer.ggml.tokens", all.data(), all.size());
    gguf_set_val_str(gguf, "tokenizer.ggml.model", "gemma4");
  };
  edit(become);
  expect_error("the vocabulary has no merges (tokenizer.ggml.merges)");
  edit([&](gguf_context* gguf) { gguf_set_arr_str(gguf, "tokenizer.ggml.merges", merges.data(), merges.size()); });
  {
    const auto model = Model::load(path_);
    constexpr Token kFirst = 288 - 5;
    constexpr Token kBytes = 3;
    EXPECT_EQ(model->vocab().tokenize("ab"), (std::vector<Token>{kFirst + 2}));
    EXPECT_EQ(model->vocab().tokenize("b ab"), (std::vector<Token>{kFirst + 1, kFirst + 4}));
    EXPECT_EQ(model->vocab().tokenize("\u00e9\n"), (std::vector<Token>{kBytes + 0xC3, kBytes + 0xA9, kBytes + '\n'}));
    EXPECT_EQ(model->vocab().text(kFirst + 4), " ab");
    EXPECT_EQ(model->vocab().text(kBytes + 0xC3), "\xC3");
  }
  edit([&](gguf_context* gguf) { gguf_remove_key(gguf, "tokenizer.ggml.bos_token_id"); });
  expect_error("key tokenizer.ggml.bos_token_id is missing, but texts begin with this token");
}

TEST_F(ModelFileTest, sizes_whose_sum_overflows) {
  // 2^13 tensors of 2^48 doubles: their sizes add up to 2^64, which is 0.
  constexpr int kTensors = 8192;
  constexpr std::int64_t kSide = std::int64_t{1} << 24U;
  const auto size = std::filesystem::file_size(path_);
  const gguf_context_ptr gguf(gguf_init_from_file(path_.c_str(), {true, nullptr}));
  const ggml_context_ptr context(ggml_init({kTensors * ggml_tensor_overhead(), nullptr, true}));
  for (int i = 0; i < kTensors; ++i) {
    ggml_tensor* const tensor = ggml_new_tensor_2d(context.get(), GGML_TYPE_F64, kSide, kSide);
    ggml_set_name(tensor, ("large." + std::to_string(i)).c_str());
    gguf_add_tensor(gguf.get(), tensor);
  }
  constexpr bool kHeaderAlone = true;
  ASSERT_TRUE(gguf_write_to_file(gguf.get(), path_.c_str(), kHeaderAlone));
  std::filesystem::resize_file(path_, std::filesystem::file_size(path_) + size);
  expect_error("truncated: tensor large.0 ends at byte");
}

TEST_F(ModelFileTest, no_text_has_fewer_tokens_than_the_least) {
  for (const auto& path : {path_, test::real_model().value_or(path_)}) {
    const auto model = Model::load(path);
    std::mt19937 random(1);
    for (int round = 0; round < 200; ++round) {
      std::string text;
      for (int i = 0; i < 40; ++i)
        text += model->vocab().text(static_cast<Token>(random() % static_cast<unsigned>(model->info().n_vocab)));
      EXPECT_LE(model->vocab().least_tokens(text.size()), model->vocab().tokenize(text).size()) << text;
    }
    EXPECT_GT(model->vocab().least_tokens(1U << 20U), 1U << 10U);  // and the bound is not trivial
  }
}

}  // namespace
}  // namespace winnow
