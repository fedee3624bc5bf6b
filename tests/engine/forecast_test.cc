// SPDX-License-Identifier: Apache-2.0
// Compares the forecast of a prompt with its reading, by the number of rows that pass through layers and by bytes.
#include "winnow/forecast.h"

#include <gtest/gtest.h>
#include <spdlog/fmt/fmt.h>

#include <string>
#include <vector>

#include "engine/session_impl.h"
#include "support/cache_options.h"
#include "support/random_tokens.h"
#include "support/some_calibration.h"
#include "support/temp.h"
#include "support/tiny_gguf.h"
#include "winnow/generate.h"
#include "winnow/methods.h"
#include "winnow/recommended.h"

namespace winnow::test {
namespace {

constexpr int kAnswer = 20;

struct Taken {
  std::int64_t layer_rows = 0;  ///< rows that pass through layers until the answers begin
  std::size_t peak = 0;
};

class ForecastTest : public testing::Test {
 protected:
  ForecastTest() {
    TinyModel tiny;
    tiny.n_layer = 3;
    use(tiny);
  }

  void use(const TinyModel& tiny) {
    const std::string path = folder_ / tiny.arch + ".gguf";
    write_tiny_gguf(tiny, path);
    model_ = Model::load(path);
    calibration_ = calibrated(path + ".cal", *model_);
  }

  /// A new session, without work space.
  Session session() const { return {model_, {2, Precision::automatic, 128, Pack::automatic, calibration_}}; }
  std::vector<Token> tokens(int n, unsigned seed = 1) const { return random_tokens(n, model_->info().n_vocab, seed); }
  std::int64_t layers() const { return model_->info().n_layer; }

  static Taken take(Session& session, std::span<const Token> text, const std::vector<std::vector<Token>>& questions,
                    Protocol protocol, const CacheOptions& keep) {
    session.reset_peak();
    Taken out;
    const auto& executor = session.impl().executor;
    std::int64_t before = executor.layer_rows();
    Questions asked(session, text, questions, protocol, std::span(&keep, 1));
    GenerateOptions generating;
    generating.max_tokens = kAnswer;
    for (std::size_t i = 0; i < asked.size(); ++i) {
      auto start = asked.ask(i);
      out.layer_rows += executor.layer_rows() - before;
      Cache* const cache = &start.caches.front();
      generate(session, std::span(&cache, 1), std::span(&start.logits.front(), 1), generating);
      before = executor.layer_rows();
    }
    out.peak = session.memory().peak;
    return out;
  }

  void expect_true(const CacheOptions& keep, int text, const std::vector<int>& lengths, Protocol protocol) {
    std::vector<std::vector<Token>> questions;
    for (const int length : lengths) questions.push_back(tokens(length, static_cast<unsigned>(length)));
    SCOPED_TRACE(fmt::format("{} @ {}, {} tokens, {} questions, {}", keep.spec.print(),
                             keep.budget ? keep.budget->print() : "all", text, lengths.size(),
                             protocol == Protocol::aware ? "aware" : "agnostic"));
    auto asking = session();
    const auto told = forecast(asking, tokens(text), questions, protocol, keep, kAnswer);
    auto taking = session();
    const auto taken = take(taking, tokens(text), questions, protocol, keep);
    EXPECT_EQ(told.rows * layers(), taken.layer_rows);
    EXPECT_GE(told.peak_bytes, taken.peak);
  }

  TempFolder folder_;
  std::shared_ptr<const Model> model_;
  std::string calibration_;
};

std::vector<std::string> specs() {
  std::vector<std::string> out = {recommended(Protocol::aware).print(),
                                  recommended(Protocol::agnostic).print(),
                                  "ada(h2o):over=model",
                                  "lookahead(snapkv)",
                                  "lookahead(decoding(h2o:when=prefill))",
                                  "kvzip(span(snapkv))",
                                  "kvzip:chunk=100",
                                  "refit(ems)",
                                  "decoding(ada(snapkv))",
                                  "quest(ada(snapkv))",
                                  "critical(ada(snapkv))",
                                  "snapkv:positions=cache"};
  for (const auto& method : list_methods()) out.push_back(method.name);
  return out;
}

TEST_F(ForecastTest, is_what_a_prompt_takes) {
  for (const auto& spec : specs()) {
    const bool needs_budget = Spec::parse(spec).method().needs_budget();
    const auto keep = options_of(spec, needs_budget ? "30%" : "");
    expect_true(keep, 600, {15}, Protocol::aware);
    expect_true(keep, 600, {15}, Protocol::agnostic);
    expect_true(keep, 300, {90, 170, 20}, Protocol::aware);
    expect_true(keep, 300, {90, 170, 20}, Protocol::agnostic);
  }
}

/// Networks with experts that are packed one at a time, windows, KV-sharing layers, and token embeddings in each layer.
TEST_F(ForecastTest, knows_what_else_networks_have) {
  for (const char* arch : {"qwen3moe", "gpt-oss", "gemma4"}) {
    TinyModel tiny = tiny_of(arch);
    tiny.n_expert = 8;  // ignored by architectures without experts
    use(tiny);
    for (const char* spec : {"full", "lookahead(snapkv)", "kvzip", "critical(ada(snapkv))", "ada(h2o):over=model"}) {
      SCOPED_TRACE(arch);
      const auto keep = options_of(spec, Spec::parse(spec).method().needs_budget() ? "200" : "");
      expect_true(keep, 600, {15}, Protocol::aware);
      expect_true(keep, 300, {90, 170, 20}, Protocol::aware);
      expect_true(keep, 300, {90, 170, 20}, Protocol::agnostic);
    }
  }
}

TEST_F(ForecastTest, of_a_prompt_that_fits_has_no_further_readings) {
  for (const auto& spec : specs()) {
    if (!Spec::parse(spec).method().needs_budget()) continue;
    expect_true(options_of(spec, "700"), 400, {15}, Protocol::aware);
  }
}

}  // namespace
}  // namespace winnow::test
