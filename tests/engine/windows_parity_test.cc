// SPDX-License-Identifier: Apache-2.0
// Layers with sliding windows, compared with libllama on the same file, around the edges of the window. libllama's
// cache of such layers holds all tokens, or only a window.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "benchmark/llama_cpp.h"
#include "network/network.h"
#include "support/cache_options.h"
#include "support/named_model.h"
#include "support/rounding.h"
#include "support/temp.h"
#include "support/tiny_gguf.h"
#include "winnow/session.h"

namespace winnow::test {
namespace {

using benchmark::WindowCache;

constexpr std::uint32_t kWindow = 8;
constexpr int kW = kWindow;
constexpr int kSteps = 12;

TinyModel small(const std::string& arch, int layers, const std::vector<TinyKey>& keys) {
  TinyModel model = tiny_of_heads(arch, 4, 2, 32);
  model.n_layer = layers;
  model.keys = keys;
  return model;
}

std::vector<NamedModel> all_cases() {
  const TinyKey window{".attention.sliding_window", kWindow};
  const std::string pattern = ".attention.sliding_window_pattern";
  std::vector<NamedModel> out;
  out.push_back({"gemma3", small("gemma3", 7, {{".rope.freq_base_swa", 500.0F}})});
  out.back().model.scaling = {"linear", 8};
  out.push_back({"gemma3_usual_base", small("gemma3", 7, {})});
  out.push_back(
      {"gemma3_by_array", small("gemma3", 5, {{pattern, std::vector<bool>{false, true, true, false, true}}})});
  out.push_back({"gemma3_by_number", small("gemma3", 5, {{pattern, 2U}})});
  out.push_back({"gemma3_all_windows", small("gemma3", 3, {{pattern, 0U}})});
  out.push_back({"gemma3_window_of_one", small("gemma3", 3, {{".attention.sliding_window", 1U}, {pattern, 2U}})});
  out.push_back({"gemma3_of_62_layers", small("gemma3", 62, {})});  // 27B: q·k is scaled by the model's width
  out.push_back({"gemma2", small("gemma2", 4, {{".rope.freq_base_swa", 500.0F}})});
  out.back().model.scaling = {"linear", 8};
  out.push_back({"gemma4", small("gemma4", 6, {{".rope.freq_base_swa", 500.0F}})});
  out.back().model.scaling = {"linear", 8};
  out.push_back({"gemma4_shared_keys", small("gemma4", 6, {})});
  out.back().model.shared_kv = 3;
  out.back().model.layer_embedding = 16;
  out.push_back({"granite_swa", small("granite_swa", 4, {})});
  out.push_back({"cohere2", small("cohere2", 5, {})});
  out.push_back({"olmo2", small("olmo2", 5, {window})});
  out.back().model.scaling = {"yarn", 4, 64};
  out.push_back({"exaone4", small("exaone4", 64, {window})});
  out.back().model.scaling = {"linear", 2};
  out.push_back({"exaone4_of_few_layers", small("exaone4", 5, {window})});
  return out;
}

class WindowsParity : public testing::TestWithParam<NamedModel> {
 protected:
  WindowsParity() { write_tiny_gguf(GetParam().model, path_); }

  double tolerance() const {
    const auto& m = GetParam().model;
    if (tiny_architecture(m.arch).unscaled_attention) return tolerance_of(m);
    return f32_tolerance(m.n_layer) + (tiny_architecture(m.arch).gelu ? half_tolerance(10, m.n_layer) : 0);
  }
  static std::vector<Token> tokens(int n, unsigned seed = 7) { return random_tokens(n, 288, seed); }

  benchmark::Llama llama(WindowCache cache, const std::string& path) const {
    benchmark::LlamaOptions options;
    options.context = 512;
    options.threads = 1;
    options.kv_type = ElementType::f32;
    options.window_cache = cache;
    return {path, options};
  }
  /// Logits of every token.
  std::vector<float> expected(std::span<const Token> text, WindowCache cache = WindowCache::full_size) const {
    auto peer = llama(cache, path_);
    return peer.decode_all(text);
  }
  static std::span<const float> row(const std::vector<float>& logits, int token) {
    return std::span(logits).subspan(static_cast<std::size_t>(token) * 288, 288);
  }

  TempFolder folder_;
  std::string path_ = folder_ / "tiny.gguf";
};

/// A session with a file's model, and one sequence.
struct Running {
  Running(const std::string& path, int chunk) : session(Model::load(path), {2, Precision::f32, chunk}) {}

  std::vector<float> read(std::span<const Token> prompt) {
    const auto options = options_of("full", "", "f32");
    auto prefilled = session.prefill(prompt, std::span(&options, 1));
    cache.emplace(std::move(prefilled.caches.front()));
    return prefilled.logits;
  }
  std::vector<float> step(Token token) {
    std::vector<float> logits(288);
    Cache* const one = &*cache;
    session.step(std::span(&one, 1), std::span(&token, 1), logits);
    return logits;
  }

  Session session;
  std::optional<Cache> cache;
};

double distance(std::span<const float> got, std::span<const float> expected) { return worst_row(got, expected, 288); }

TEST_P(WindowsParity, prompts_and_steps_around_the_edges) {
  const auto text = tokens(5 * kW + kSteps);
  for (const auto cache : {WindowCache::full_size, WindowCache::window}) {
    for (const int prompt : {1, kW - 1, kW, kW + 1, 5 * kW}) {
      const auto want = expected(std::span(text).first(static_cast<std::size_t>(prompt + kSteps)), cache);
      for (const int chunk : {1, 7, kW - 1, kW, kW + 1, prompt}) {
        if (cache == WindowCache::window && chunk != prompt) continue;  // libllama's logits are the same
        SCOPED_TRACE(testing::Message() << prompt << " in chunks of " << chunk);
        Running running(path_, chunk);
        ASSERT_LT(
            distance(running.read(std::span(text).first(static_cast<std::size_t>(prompt))), row(want, prompt - 1)),
            tolerance());
        if (chunk != prompt) continue;
        for (int i = prompt; i < prompt + kSteps; ++i)
          ASSERT_LT(distance(running.step(text[static_cast<std::size_t>(i)]), row(want, i)), tolerance()) << i;
      }
    }
  }
}

/// Up to 64 tokens of a sequence are stored before the first of them attends.
TEST_P(WindowsParity, tokens_that_pass_together) {
  const auto text = tokens(5 * kW + 130 + kSteps);
  const auto want = expected(text);
  for (const int prompt : {3, kW, 5 * kW}) {
    for (const int more : {2, kW - 1, kW, kW + 1, 63, 64, 65, 130}) {
      SCOPED_TRACE(testing::Message() << prompt << " and then " << more);
      Running running(path_, 512);
      running.read(std::span(text).first(static_cast<std::size_t>(prompt)));
      const auto got = running.session.extend(
          *running.cache, std::span(text).subspan(static_cast<std::size_t>(prompt), static_cast<std::size_t>(more)));
      ASSERT_LT(distance(got, row(want, prompt + more - 1)), tolerance());
      for (int i = prompt + more; i < prompt + more + 3; ++i)
        ASSERT_LT(distance(running.step(text[static_cast<std::size_t>(i)]), row(want, i)), tolerance()) << i;
    }
  }
}

TEST_P(WindowsParity, batch_of_five) {
  Session session(Model::load(path_), {2, Precision::f32, 16});
  const auto options = options_of("full", "", "f32");
  std::vector<Cache> caches;
  std::vector<Cache*> pointers;
  std::vector<std::vector<Token>> texts;
  for (int i = 0; i < 5; ++i) {
    texts.push_back(tokens(kW - 2 + 5 * i + 3, 100 + static_cast<unsigned>(i)));
    const auto prompt = std::span(texts.back()).first(texts.back().size() - 3);
    caches.push_back(std::move(session.prefill(prompt, std::span(&options, 1)).caches.front()));
  }
  for (auto& cache : caches) pointers.push_back(&cache);
  std::vector<float> logits(std::size_t{5} * 288);
  for (std::size_t ago = 3; ago > 0; --ago) {
    std::vector<Token> next;
    for (const auto& text : texts) next.push_back(text[text.size() - ago]);
    session.step(pointers, next, logits);
    for (int i = 0; i < 5; ++i) {
      const auto& text = texts[static_cast<std::size_t>(i)];
      EXPECT_LT(distance(row(logits, i), row(expected(text), static_cast<int>(text.size() - ago))), tolerance()) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(all, WindowsParity, testing::ValuesIn(all_cases()),
                         [](const auto& test) { return test.param.name; });

/// The tolerance is meaningful only if a window off by one exceeds it: in a prompt, in steps, and in tokens that pass
/// together.
class WindowOffByOne : public WindowsParity {};

TEST_P(WindowOffByOne, is_noticed) {
  const int prompt = 3 * kW;
  const auto text = tokens(prompt + 11);
  const auto want = expected(text);
  for (const std::uint32_t wrong : {kWindow - 1, kWindow + 1}) {
    TinyModel model = GetParam().model;
    std::erase_if(model.keys, [](const TinyKey& key) { return key.name == ".attention.sliding_window"; });
    model.keys.push_back({".attention.sliding_window", wrong});
    const std::string path = folder_ / ("wrong" + std::to_string(wrong));
    write_tiny_gguf(model, path);
    Running running(path, 512);
    EXPECT_GT(distance(running.read(std::span(text).first(static_cast<std::size_t>(prompt))), row(want, prompt - 1)),
              tolerance());
    EXPECT_GT(distance(running.step(text[static_cast<std::size_t>(prompt)]), row(want, prompt)), tolerance());
    EXPECT_GT(distance(running.session.extend(*running.cache, std::span(text).last(10)), row(want, prompt + 10)),
              tolerance());
  }
}

std::vector<NamedModel> with_windows() {
  std::vector<NamedModel> out;
  for (auto& one : all_cases()) {
    if (one.name == "gemma3" || one.name == "gemma2" || one.name == "granite_swa" || one.name == "cohere2" ||
        one.name == "olmo2" || one.name == "exaone4")
      out.push_back(one);
  }
  return out;
}

INSTANTIATE_TEST_SUITE_P(all, WindowOffByOne, testing::ValuesIn(with_windows()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace winnow::test
