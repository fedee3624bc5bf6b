// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "documents/resident.h"
#include "network/network.h"
#include "support/cache_options.h"
#include "support/rounding.h"
#include "support/temp.h"
#include "support/tiny_gguf.h"
#include "winnow/ask.h"

namespace winnow::test {

inline std::size_t z(int i) { return static_cast<std::size_t>(i); }

using Documents = std::vector<std::shared_ptr<const documents::Document>>;

/// A small network, a session in f32, and documents of random tokens.
class MultiTest : public testing::Test {
 protected:
  static TinyModel tiny() {
    TinyModel model;
    model.n_layer = 4;
    model.n_head = 6;
    model.n_head_kv = 2;
    model.ctx_train = 4096;
    return model;
  }

  explicit MultiTest(const TinyModel& tiny = MultiTest::tiny()) {
    write_tiny_gguf(tiny, path_);
    model_ = Model::load(path_);
    session_ = std::make_unique<Session>(model_, SessionOptions{2, Precision::f32, 100});
  }

  std::vector<Token> tokens(int n, unsigned seed) const { return random_tokens(n, model_->info().n_vocab, seed); }

  std::shared_ptr<const documents::Document> document(std::vector<Token> text, const std::string& kv = "full",
                                                      const std::string& budget = "") {
    return documents::resident(
        documents::ingest(*session_, {"", ControlTokens::as_text, std::move(text)}, options_of(kv, budget, "f32")));
  }
  Documents documents(const std::vector<int>& lengths) {
    Documents out;
    for (const int n : lengths) out.push_back(document(tokens(n, 100 + static_cast<unsigned>(out.size()))));
    return out;
  }
  static std::vector<Token> joined(const Documents& documents) {
    std::vector<Token> out;
    for (const auto& d : documents) {
      const auto& text = d->head().saved.transcript.tokens;
      out.insert(out.end(), text.begin(), text.end());
    }
    return out;
  }

  Asked ask(const Documents& documents, const std::string& method, const std::string& budget = "") {
    return ask(documents, method, question_, budget);
  }
  Asked ask(const Documents& documents, const std::string& method, const std::vector<Token>& question,
            const std::string& budget = "") {
    AskOptions options{AskSpec::parse(method), {}, KvType::parse("f32")};
    if (!budget.empty()) options.budget = Budget::parse(budget);
    return winnow::ask(*session_, documents, question, options);
  }

  static double distance(std::span<const float> a, std::span<const float> b) {
    EXPECT_EQ(a.size(), b.size());
    return worst_row(a, b, static_cast<int>(b.size()));
  }
  /// Tolerance for the logits of two programs that compute the same in f32.
  double tolerance() const { return f32_tolerance(model_->info().n_layer); }

  TempFolder folder_;
  std::string path_ = folder_ / "tiny.gguf";
  std::shared_ptr<const Model> model_;
  std::unique_ptr<Session> session_;
  std::vector<Token> question_ = random_tokens(17, 200, 7);
};

}  // namespace winnow::test
