// SPDX-License-Identifier: Apache-2.0
// Limits of questions over documents: refused input, and odd input that is allowed.
#include <numeric>

#include "engine/sequence.h"
#include "fixture.h"
#include "winnow/error.h"

namespace winnow::test {
namespace {

constexpr const char* kMethods[] = {
    "samkv", "recompute", "reuse", "reuse:positions=raw", "epic", "cacheblend", "cacheblend:schedule=decreasing"};

class BorderTest : public MultiTest {
 protected:
  template <class Error, class Call>
  static void expect_refused(const Call& call, const std::string& words) {
    try {
      call();
      FAIL() << "was not refused: " << words;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
  }
};

TEST_F(BorderTest, no_documents_and_empty_questions_are_refused) {
  const auto some = documents({100});
  for (const auto* method : kMethods) {
    expect_refused<InputError>([&] { ask({}, method); }, "no documents");
    expect_refused<InputError>([&] { ask(some, method, std::vector<Token>{}); }, "question is empty");
  }
}

TEST_F(BorderTest, models_with_windows_are_refused) {
  const TempFolder folder;
  write_tiny_gguf(tiny_with_windows(8, {true, false, true}), folder / "tiny.gguf");
  Session session(Model::load(folder / "tiny.gguf"), {1, Precision::f32});
  expect_refused<UsageError>([&] { documents::ingest(session, {"a text"}, {}); },
                             "documents need a model without sliding windows, but 2 of the 3 layers of ");
}

TEST_F(BorderTest, models_whose_layers_read_other_layers_keys_are_refused) {
  const TempFolder folder;
  TinyModel model = tiny_of("gemma4");
  model.keys = {{".attention.sliding_window_pattern", std::vector<bool>(static_cast<std::size_t>(model.n_layer))}};
  model.shared_kv = 2;
  write_tiny_gguf(model, folder / "tiny.gguf");
  Session session(Model::load(folder / "tiny.gguf"), {1, Precision::f32});
  expect_refused<UsageError>(
      [&] { documents::ingest(session, {"a text"}, {}); },
      "documents need a model whose layers all have keys of their own, but 2 of the 6 layers of ");
}

TEST_F(BorderTest, models_whose_keys_cannot_be_turned_are_refused) {
  const TempFolder folder;
  write_tiny_gguf(tiny_of("hunyuan-dense"), folder / "tiny.gguf");
  Session session(Model::load(folder / "tiny.gguf"), {1, Precision::f32});
  expect_refused<UsageError>([&] { documents::ingest(session, {"a text"}, {}); },
                             "documents cannot be combined with the architecture hunyuan-dense");
}

TEST_F(BorderTest, any_lengths_work_with_any_method) {
  for (const auto& lengths : {std::vector{1}, {1, 1, 1}, {64, 65, 63}, {128, 129, 192}, {193, 1, 257}, {256, 256}}) {
    const auto some = documents(lengths);
    for (const auto* method : kMethods) {
      const auto asked = ask(some, method);
      for (const float x : asked.logits) ASSERT_TRUE(std::isfinite(x)) << method;
      EXPECT_GT(asked.sequence_ratio, 0);
      EXPECT_LE(asked.sequence_ratio, 1);
      EXPECT_LE(asked.recompute_ratio, asked.sequence_ratio);
    }
    const int all = std::accumulate(lengths.begin(), lengths.end(), 0);
    if (all < 64) continue;
    const auto asked = ask(some, "multi-infllm", "64");
    EXPECT_EQ(asked.cache.stats().tokens_seen, all + 17);
  }
}

TEST_F(BorderTest, a_document_may_be_there_twice) {
  const auto one = documents({300});
  const Documents twice = {one.front(), one.front()};
  const Documents copies = {one.front(), document(joined(one))};
  for (const auto* method : kMethods) EXPECT_EQ(ask(twice, method).logits, ask(copies, method).logits) << method;
}

TEST_F(BorderTest, multi_infllm_with_room_for_all_is_reuse) {
  const auto some = documents({100, 150});
  EXPECT_LT(distance(ask(some, "multi-infllm", "1000").logits, ask(some, "reuse").logits), tolerance());
}

TEST_F(BorderTest, multi_infllm_reads_its_budget) {
  const auto asked = ask(documents({400, 300}), "multi-infllm", "128");
  EXPECT_EQ(asked.cache.stats().entries_min, 717);
  EXPECT_LE(asked.cache.stats().attended_per_head_mean, 128);
}

TEST_F(BorderTest, budgets_are_for_methods_that_have_one) {
  const auto some = documents({100});
  expect_refused<UsageError>([&] { ask(some, "samkv", "100"); }, "samkv takes no budget");
  expect_refused<UsageError>([&] { ask(some, "multi-infllm"); }, "multi-infllm needs a budget");
  expect_refused<UsageError>([&] { ask(some, "multi-infllm", "3"); }, "at least");
}

TEST_F(BorderTest, specs_are_read_and_printed) {
  EXPECT_EQ(AskSpec().print(), "samkv");
  EXPECT_EQ(AskSpec::parse("samkv:sigma=3.0,update=overwrite").print(), "samkv:update=overwrite");
  EXPECT_EQ(AskSpec::parse("epic").print_full(), "epic:initial=16,local=0");
  for (const auto& method : list_ask_methods())
    EXPECT_EQ(AskSpec::parse(AskSpec::parse(method.name).print_full()).print(), method.name);
  expect_refused<UsageError>([] { AskSpec::parse("samvk"); }, "did you mean samkv");
  expect_refused<UsageError>([] { AskSpec::parse("epic:inital=3"); }, "did you mean initial");
  expect_refused<UsageError>([] { AskSpec::parse("epic:initial=3,initial=4"); }, "twice");
  for (const auto* text :
       {"", ":", "epic:", "epic:initial", "epic:initial=", "epic:=3", "epic:initial=3,", "epic(full)"})
    EXPECT_THROW(AskSpec::parse(text), UsageError) << text;
}

TEST_F(BorderTest, compressed_documents_are_for_reuse_alone) {
  const Documents some = {document(tokens(300, 1), "snapkv", "64"), document(tokens(200, 2))};
  for (const auto* method : {"samkv", "epic", "cacheblend"})
    expect_refused<UsageError>([&] { ask(some, method); }, "document 1 of 2 was compressed by snapkv");
  const auto asked = ask(some, "reuse");
  EXPECT_EQ(asked.cache.stats().entries_min, 64 + 200 + 17);
  EXPECT_NEAR(asked.sequence_ratio, 264.0 / 500, 1e-9);
  for (const auto* kv : {"ems", "streaming-llm:when=prefill", "snapkv:positions=cache"})
    expect_refused<UsageError>([&] { document(tokens(300, 1), kv, "100"); }, "do not stay at their positions");
  for (const auto* kv : {"quest", "quest(snapkv)", "streaming-llm", "infllm"})
    expect_refused<UsageError>([&] { document(tokens(300, 1), kv, "100"); }, "which entries a query reads");
}

TEST_F(BorderTest, documents_that_cannot_be_read_are_refused) {
  expect_refused<InputError>([&] { document({}); }, "empty");
  expect_refused<InputError>([&] { document(tokens(4097, 1)); }, "4097 tokens, more than the model's context of 4096");
  expect_refused<InputError>([&] { document({5, 1000000}); }, "1000000");
}

TEST_F(BorderTest, documents_of_another_model_are_refused) {
  const auto some = documents({100, 100});
  TinyModel other = tiny();
  other.seed = 2;
  write_tiny_gguf(other, folder_ / "other.gguf");
  Session session(Model::load(folder_ / "other.gguf"), {1, Precision::f32, 100});
  expect_refused<InputError>([&] { winnow::ask(session, some, question_, {}); },
                             "document 1 of 2 was read with another model");
}

TEST_F(BorderTest, what_is_not_whole_is_not_saved) {
  const auto some = documents({500, 300});
  Transcript transcript;
  transcript.tokens = joined(some);
  transcript.tokens.insert(transcript.tokens.end(), question_.begin(), question_.end());
  const auto path = folder_ / "asked.kv";
  const auto sparse = ask(some, "samkv");
  expect_refused<UsageError>([&] { session_->save(path, sparse.cache, sparse.logits, transcript); }, "of 817 tokens");
  auto whole = ask(some, "epic");
  session_->save(path, whole.cache, whole.logits, transcript);
  auto restored = session_->load(path);
  const std::vector<Token> next = {7};
  EXPECT_EQ(session_->extend(restored.cache, next), session_->extend(whole.cache, next));
}

TEST_F(BorderTest, asking_can_be_stopped_anywhere_and_goes_on_later) {
  const auto some = documents({300, 300});
  for (const auto* method : kMethods) {
    const auto want = ask(some, method).logits;
    for (const int after : {0, 3, 40}) {
      int calls = 0;
      session_->on_stop([&] { return calls++ >= after; });
      EXPECT_THROW(ask(some, method), Interrupted) << method;
      session_->on_stop({});
      EXPECT_EQ(ask(some, method).logits, want) << method;
    }
  }
}

}  // namespace
}  // namespace winnow::test
