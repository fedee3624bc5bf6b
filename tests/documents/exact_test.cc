// SPDX-License-Identifier: Apache-2.0
// Pairs of ways to ask that must give the same result.
#include <numeric>

#include "engine/sequence.h"
#include "fixture.h"

namespace winnow::test {
namespace {

class ExactTest : public MultiTest {
 protected:
  /// Logits of a question after a text that was read as one prompt.
  std::vector<float> plain(const std::vector<Token>& text, const CacheOptions& options) {
    auto prefilled = session_->prefill(text, std::span(&options, 1));
    return session_->extend(prefilled.caches.front(), question_);
  }
  std::vector<float> plain(const std::vector<Token>& text) { return plain(text, options_of("full", "", "f32")); }

  void expect_as_recomputed(const Documents& documents, const std::string& method) {
    const auto want = ask(documents, "recompute:bos=each");
    const auto got = ask(documents, method);
    EXPECT_LT(distance(got.logits, want.logits), tolerance()) << method;
    EXPECT_GT(distance(ask(documents, "reuse").logits, want.logits), 10 * tolerance())
        << "these documents do not need each other";
  }
};

TEST_F(ExactTest, recompute_is_one_prefill_of_all_tokens) {
  const auto some = documents({150, 90, 200});
  auto prompt = joined(some);
  prompt.insert(prompt.end(), question_.begin(), question_.end());
  const auto options = options_of("full", "", "f32");
  EXPECT_EQ(ask(some, "recompute:bos=each").logits, session_->prefill(prompt, std::span(&options, 1)).logits);
}

TEST_F(ExactTest, recompute_takes_the_beginning_of_sequence_once) {
  const auto bos = model_->tokenize(Conversation{"x", {}, PromptFormat::raw, ControlTokens::as_text}).front();
  auto a = tokens(70, 1);
  auto b = tokens(80, 2);
  std::vector<Token> prompt = {bos};
  for (const auto* part : {&a, &b, &question_}) prompt.insert(prompt.end(), part->begin(), part->end());
  for (auto* part : {&a, &b}) part->insert(part->begin(), bos);
  const auto options = options_of("full", "", "f32");
  EXPECT_EQ(ask({document(a), document(b)}, "recompute").logits,
            session_->prefill(prompt, std::span(&options, 1)).logits);
}

TEST_F(ExactTest, reuse_of_one_document_is_a_plain_run) {
  const auto one = documents({333});
  EXPECT_EQ(ask(one, "reuse").logits, plain(joined(one)));
  EXPECT_EQ(ask(one, "reuse:positions=raw").logits, plain(joined(one)));
}

TEST_F(ExactTest, reuse_of_a_compressed_document_is_a_plain_run_of_its_method) {
  const auto text = tokens(400, 5);
  EXPECT_EQ(ask({document(text, "ada(snapkv)", "80")}, "reuse").logits,
            plain(text, options_of("ada(snapkv)", "80", "f32")));
}

TEST_F(ExactTest, cacheblend_of_all_tokens_is_recompute) {
  expect_as_recomputed(documents({150, 90, 200}), "cacheblend:share=1");
}

TEST_F(ExactTest, epic_of_all_tokens_is_recompute) {
  expect_as_recomputed(documents({150, 90, 200}), "epic:initial=1000");
}

TEST_F(ExactTest, epic_s_ends_may_overlap) {
  expect_as_recomputed(documents({150, 90, 200}), "epic:initial=120,local=110");
}

TEST_F(ExactTest, samkv_of_documents_without_middle_blocks_is_recompute) {
  expect_as_recomputed(documents({192, 64, 10, 130}), "samkv:update=overwrite");
}

TEST_F(ExactTest, samkv_without_recomputing_of_documents_without_middle_blocks_is_reuse) {
  const auto some = documents({192, 64, 10, 130});
  EXPECT_EQ(ask(some, "samkv:recompute=off").logits, ask(some, "reuse").logits);
}

TEST_F(ExactTest, samkv_of_one_short_document_is_a_plain_run) {
  const auto one = documents({180});
  EXPECT_EQ(ask(one, "samkv:recompute=off").logits, plain(joined(one)));
}

TEST_F(ExactTest, one_document_alone_is_recomputed_to_what_it_is) {
  // Tokens see nothing new, so recomputed and stored entries are equal up to rounding, fused or not.
  const auto one = documents({180});
  const auto want = plain(joined(one));
  for (const auto* method : {"samkv", "samkv:update=overwrite", "cacheblend", "epic"}) {
    EXPECT_LT(distance(ask(one, method).logits, want), tolerance()) << method;
  }
}

TEST_F(ExactTest, in_the_first_layer_new_is_old) {
  const auto some = documents({500, 300});
  auto fresh = ask(some, "samkv:update=overwrite");
  auto stored = ask(some, "samkv:recompute=off");
  ASSERT_GT(fresh.recompute_ratio, 0.3);
  const auto& a = fresh.cache.impl();
  const auto& b = stored.cache.impl();
  const auto row = z(model_->info().head_dim);
  double farthest = 0;  // the largest distance in the last layer
  for (const int layer : {0, 3}) {
    for (int slot = 0; slot < a.lanes(layer).length(0); ++slot) {
      ASSERT_EQ(a.lanes(layer).position(0, slot), b.lanes(layer).position(0, slot));
      std::vector<float> x[4];
      for (auto& v : x) v.resize(row);
      a.lanes(layer).key(0, slot, x[0]);
      b.lanes(layer).key(0, slot, x[1]);
      a.lanes(layer).value(0, slot, x[2]);
      b.lanes(layer).value(0, slot, x[3]);
      const double far = std::max(distance(x[0], x[1]), distance(x[2], x[3]));
      farthest = std::max(farthest, far);
      // Bound for two matrix products, and for RoPE applied once or twice at an angle near 800 radians, whose f32 error
      // is 800 u.
      if (layer == 0) {
        ASSERT_LT(far, 8 * 0x1p-24 * (800 + std::sqrt(512.0)));
      }
    }
  }
  EXPECT_GT(farthest, 0.01);
}

TEST_F(ExactTest, results_do_not_depend_on_threads_or_barely_on_chunks) {
  const auto some = documents({500, 300, 64});
  const auto want = ask(some, "samkv").logits;
  Session one(model_, {1, Precision::f32, 100});
  Session small(model_, {2, Precision::f32, 37});
  const AskOptions options{AskSpec(), {}, KvType::parse("f32")};
  EXPECT_EQ(winnow::ask(one, some, question_, options).logits, want);
  EXPECT_LT(distance(winnow::ask(small, some, question_, options).logits, want), tolerance());
}

TEST_F(ExactTest, the_real_model_in_f16_agrees_as_far_as_its_roundings_let_it) {
  const auto path = real_model();
  if (!path) GTEST_SKIP() << "WINNOW_TEST_MODEL is not set";
  const auto model = Model::load(*path);
  Session session(model, {2, Precision::f32});  // otherwise only some lengths of prompts would be multiplied in bf16
  Documents some;
  for (const auto* text : {"The lighthouse keeper of Skerry Point is called Orla Finch. She has a dog.\n\n",
                           "Every morning the mail boat leaves from Harrow, which lies north of Skerry Point.\n\n",
                           "The dog of the lighthouse keeper likes to swim behind the mail boat.\n\n"}) {
    some.push_back(documents::resident(documents::ingest(session, {text}, {})));
  }
  const auto question = model->vocab().tokenize("Question: Whose dog swims behind the mail boat?\nAnswer:");
  const auto logits = [&](const char* method) {
    return winnow::ask(session, some, question, {AskSpec::parse(method), {}, {}}).logits;
  };
  const auto want = logits("recompute:bos=each");
  const int layers = model->info().n_layer;
  const double tolerance = quantized_tolerance(layers) + half_tolerance(10, layers);
  // These short documents depend on each other by less than that worst-case tolerance. So the distance must also be far
  // below that of reuse.
  const double reuse = distance(logits("reuse"), want);
  for (const auto* method : {"samkv:update=overwrite", "cacheblend:share=1", "epic:initial=1000"}) {
    const double far = distance(logits(method), want);
    EXPECT_LT(far, tolerance) << method;
    EXPECT_LT(far, reuse / 3) << method;
  }
}

TEST_F(ExactTest, generation_goes_on_after_the_question) {
  const auto some = documents({500, 300});
  auto asked = ask(some, "samkv");
  const auto stats = asked.cache.stats();
  EXPECT_EQ(stats.tokens_seen, 800 + 17);
  const auto& blocks = asked.kept_blocks;
  // Every lane of a layer has the kept blocks' entries and the question's; the last blocks are partial.
  for (int layer = 0; layer < model_->info().n_layer; ++layer) {
    int entries = 17;
    for (int i = 0; i < 2; ++i) {
      for (const int b : blocks[layer][i]) entries += std::min(64, some[i]->tokens() - 64 * b);
    }
    for (int head = 0; head < 2; ++head) EXPECT_EQ(asked.cache.impl().lanes(layer).length(head), entries);
  }
  const Token next = 5;
  std::vector<float> logits(z(model_->info().n_vocab));
  Cache* const caches[] = {&asked.cache};
  session_->step(caches, std::span(&next, 1), logits);
  auto longer = question_;
  longer.push_back(next);
  const auto together = ask(some, "samkv:select=off,recompute=off", longer);  // the question chooses nothing
  auto apart = ask(some, "samkv:select=off,recompute=off");
  EXPECT_LT(distance(session_->extend(apart.cache, std::span(&next, 1)), together.logits), tolerance());
}

}  // namespace
}  // namespace winnow::test
