// SPDX-License-Identifier: Apache-2.0
// Ask methods over documents, measured beside caches of the joint prompt.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "documents/resident.h"
#include "eval/group.h"
#include "eval/runner.h"
#include "eval/task_data.h"
#include "support/cache_options.h"
#include "support/refusal.h"
#include "winnow/generate.h"
#include "winnow/recommended.h"

namespace winnow::eval {
namespace {

constexpr double kTolerance = 1e-4;  // of logits: f32 throughout, sums in another order

using test::usage_error;
using Tokens = std::vector<Token>;

std::vector<std::string> specs_of(const std::vector<Method>& methods) {
  std::vector<std::string> out;
  for (const auto& method : methods)
    out.push_back(method.spec() + (method.budget() ? "@" + method.budget()->print() : ""));
  return out;
}

std::vector<Method> methods_of(const std::vector<std::string>& lists, const std::vector<std::string>& budgets = {}) {
  return winnow::eval::methods_of(lists, budgets, std::vector<std::string>{"f32"}, kProtocols);
}

TEST(Methods, lists_have_caches_and_asks) {
  EXPECT_EQ(specs_of(methods_of({"full,epic:initial=64,local=128,snapkv:window=16", "samkv,samkv"}, {"64", "128"})),
            (std::vector<std::string>{"full", "epic:initial=64,local=128", "snapkv:window=16@64",
                                      "snapkv:window=16@128", "samkv"}));
  EXPECT_EQ(specs_of(methods_of({"multi-infllm,chunk(snapkv)"}, {"64"})),
            (std::vector<std::string>{"multi-infllm@64", "chunk(snapkv)@64"}));
  const auto types = winnow::eval::methods_of(std::vector<std::string>{"reuse"}, {},
                                              std::vector<std::string>{"f16", "q8_0"}, kProtocols);
  ASSERT_EQ(types.size(), 2U);
  EXPECT_EQ(types[1].kv_type().print(), "q8_0");
  EXPECT_EQ(types[1].ask()->kv_type.print(), "q8_0");
}

TEST(Methods, recommended_ones_go_by_the_protocols) {
  const std::vector<std::string> budgets = {"64"};
  const std::vector<std::string> types = {"f32"};
  for (const auto which : kRecommended) {
    const std::vector<std::string> list{std::string(name_of(which))};
    for (const auto protocol : kProtocols) {
      const auto methods = winnow::eval::methods_of(list, budgets, types, std::array{protocol});
      EXPECT_EQ(specs_of(methods), std::vector{recommended(protocol, which).print() + "@64"});
    }
    EXPECT_EQ(methods_of(list, budgets).size(), 2U);
  }
  EXPECT_NE(usage_error([] { methods_of({"auto:slow"}, {"64"}); }).find("auto:fast"), std::string::npos);
}

TEST(Methods, that_cannot_be_are_refused) {
  EXPECT_NE(usage_error([] { methods_of({"samkw"}); }).find("did you mean samkv?"), std::string::npos);
  EXPECT_NE(usage_error([] { methods_of({"snapkw"}, {"64"}); }).find("did you mean snapkv?"), std::string::npos);
  EXPECT_EQ(usage_error([] { methods_of({"multi-infllm"}); }),
            "multi-infllm needs a budget: give entries per KV head (512), a share (10%) or bytes (64MiB)");
  EXPECT_NE(usage_error([] { methods_of({"snapkv"}); }).find("budget"), std::string::npos);
  EXPECT_NE(usage_error([] { methods_of({"epic:initial=64,,reuse"}); }), "");
  EXPECT_NE(usage_error([] { methods_of({"samkv:updat=fusion"}); }).find("did you mean update?"), std::string::npos);
}

class AskingTest : public testing::Test {
 protected:
  /// A sample with documents of 460, 230 and 345 bytes.
  static Sample sample(const std::string& before) {
    Sample out;
    out.task = "t";
    out.id = "1";
    out.prompt.text = before;
    out.prompt.question = "Who?";
    out.prompt.format = PromptFormat::raw;
    for (const int words : {40, 20, 30}) {
      auto& document = out.documents.emplace_back();
      for (int i = 0; i < words; ++i) document += "word" + std::to_string(1000 + 7 * words + i) + "...";
    }
    out.references = {"x"};
    out.max_tokens = 12;
    return out;
  }

  /// The tokens at the beginning of every text.
  Tokens bos() const {
    const auto with = data_.model()->tokenize(Conversation{"x", {}, PromptFormat::raw});
    return {with.begin(), with.end() - static_cast<std::ptrdiff_t>(data_.model()->vocab().tokenize("x").size())};
  }

  TokenizedSample read_as(const Sample& sample, int max_prompt = 0) const {
    return tokenized(*data_.model(), sample, Protocol::aware, max_prompt);
  }

  std::vector<Record> measure(const Task& task, const std::vector<Method>& methods, Protocol protocol = Protocol::aware,
                              const PromptLimits& limits = {}) {
    return Group(*data_.model(), task.samples.front(), protocol, methods, limits).measure(session_, task);
  }

  TaskData data_;
  Session session_{data_.model(), single()};
};

TEST_F(AskingTest, the_joint_prompt_is_all_documents_after_one_beginning) {
  const auto& model = *data_.model();
  ASSERT_EQ(bos().size(), 1U) << "the model's own beginning is what this is about";
  for (const std::string before : {"", "Read this: "}) {
    const auto one = sample(before);
    const auto read = read_as(one);
    Tokens joint = bos();
    const auto add = [](Tokens& to, const Tokens& more) { to.insert(to.end(), more.begin(), more.end()); };
    std::vector<Tokens> alone;
    if (!before.empty()) {
      add(joint, model.vocab().tokenize(before));
      alone.push_back(joint);
    }
    for (const auto& document : one.documents) {
      add(joint, model.vocab().tokenize(document));
      add(alone.emplace_back(bos()), model.vocab().tokenize(document));
    }
    EXPECT_EQ(read.prompt.text, joint) << before;
    EXPECT_EQ(read.prompt.question, model.vocab().tokenize("Who?"));
    EXPECT_EQ(read.documents, alone) << before;
  }
}

TEST_F(AskingTest, the_longest_documents_lose_their_middles) {
  const auto one = sample("Read this: ");
  const auto whole = read_as(one);
  const int fixed = static_cast<int>(whole.documents[0].size() + whole.prompt.question.size());
  const auto lengths = [](const TokenizedSample& read) {
    std::vector<std::size_t> out;
    for (const auto& document : read.documents) out.push_back(document.size());
    return out;
  };
  const auto all = lengths(whole);  // each with a BOS
  const int longest = static_cast<int>(all[3]) - 1 - 10;
  const auto cut = read_as(one, fixed + 2 * longest + 1 + static_cast<int>(all[2]) - 1);
  EXPECT_EQ(lengths(cut), (std::vector<std::size_t>{all[0], static_cast<std::size_t>(longest) + 1, all[2],
                                                    static_cast<std::size_t>(longest) + 1}));
  EXPECT_EQ(cut.cut_tokens, whole.tokens() - cut.tokens());
  Tokens middle_out = whole.documents[1];
  const auto half = 1 + longest / 2;  // with BOS
  middle_out.erase(middle_out.begin() + half, middle_out.end() - (longest - longest / 2));
  EXPECT_EQ(cut.documents[1], middle_out);
  EXPECT_EQ(read_as(one, whole.tokens()).cut_tokens, 0);
  EXPECT_EQ(read_as(one, whole.tokens() - 1).tokens(), whole.tokens() - 1);
  const auto said = test::refusal([&] {
    measure({{one}, answering()}, methods_of({"full"}), Protocol::aware, {fixed + 2, 1 << 16, {}, ""});
  });
  EXPECT_EQ(said, "with a token of each document the prompt has " + std::to_string(fixed + 3) +
                      " tokens, more than --max-prompt allows (" + std::to_string(fixed + 2) + ")");
}

TEST_F(AskingTest, where_documents_end_is_part_of_the_hash) {
  auto other = sample("");
  auto& documents = other.documents;
  ASSERT_EQ(hash_of(read_as(sample(""))), hash_of(read_as(other)));
  documents = {documents[0] + documents[1], documents[2]};
  EXPECT_NE(hash_of(read_as(sample(""))), hash_of(read_as(other)));
}

/// The expected tokens are the greedy ones after the joint prompt, read like any other prompt.
TEST_F(AskingTest, recompute_answers_as_the_joint_prompt_does) {
  const Task task{{sample("Read this: ")}, answering()};
  const auto read = read_as(task.samples.front());
  auto all = read.prompt.text;
  all.insert(all.end(), read.prompt.question.begin(), read.prompt.question.end());
  const auto full = test::options_of("full", "", "f32");
  auto prefilled = session_.prefill(all, std::span(&full, 1));
  GenerateOptions options;
  options.max_tokens = 12;
  Cache* const cache = &prefilled.caches.front();
  const auto want = generate(session_, std::span(&cache, 1), std::span(&prefilled.logits, 1), options).front().text;
  for (const auto protocol : {Protocol::aware, Protocol::agnostic}) {
    const auto records = measure(task, methods_of({"full,recompute,reuse:positions=raw"}), protocol);
    EXPECT_EQ(records[0].answer, want);
    EXPECT_EQ(records[1].answer, want);
    EXPECT_EQ(records[1].prompt_tokens, static_cast<int>(all.size()));
    EXPECT_EQ(records[1].entries, static_cast<double>(all.size()));
    EXPECT_EQ(records[1].values.at("recompute_ratio"), 1);
    EXPECT_EQ(records[2].values.at("recompute_ratio"), 0);
    EXPECT_GT(records[2].values.at("ttft_ms"), 0);
    EXPECT_TRUE(records[0].values.empty());
    EXPECT_EQ(records[1].group_size, 3);
  }
}

/// Compares each method with winnow/ask.h over documents that the test reads itself.
TEST_F(AskingTest, asks_are_what_the_library_answers) {
  const Task task{{sample("")}, answering()};
  const auto read = read_as(task.samples.front());
  const auto f32 = test::options_of("full", "", "f32");
  std::vector<std::shared_ptr<const documents::Document>> documents;
  for (const auto& tokens : read.documents)
    documents.push_back(documents::resident(documents::ingest(session_, {"", ControlTokens::as_text, tokens}, f32)));
  const auto methods = methods_of({"samkv,full,epic:initial=8,cacheblend,snapkv:window=8,multi-infllm,reuse"}, {"200"});
  const auto records = measure(task, methods);
  GenerateOptions options;
  options.max_tokens = 12;
  for (std::size_t i = 0; i < methods.size(); ++i) {
    EXPECT_EQ(records[i].key.spec, methods[i].spec()) << "in the order of the methods";
    if (!methods[i].ask()) continue;
    auto asked = ask(session_, documents, read.prompt.question, *methods[i].ask());
    EXPECT_EQ(records[i].entries, asked.cache.stats().entries_per_head_mean) << methods[i].spec();
    EXPECT_EQ(records[i].bytes_held, asked.cache.stats().bytes_held);
    EXPECT_EQ(records[i].values.at("sequence_ratio"), asked.sequence_ratio);
    EXPECT_EQ(records[i].values.at("recompute_ratio"), asked.recompute_ratio);
    Cache* const cache = &asked.cache;
    EXPECT_EQ(records[i].answer,
              generate(session_, std::span(&cache, 1), std::span(&asked.logits, 1), options).front().text)
        << methods[i].spec();
  }
  EXPECT_EQ(records[5].key.budget, "200");
}

TEST_F(AskingTest, the_distance_is_that_to_the_joint_prefill) {
  const Task task{{sample("")}, agreeing(), Against::full};
  const auto records = measure(task, methods_of({"recompute,samkv,reuse"}));
  EXPECT_LT(std::abs(records[0].values.at("kl")), kTolerance);
  EXPECT_EQ(records[0].score, 1);
  EXPECT_GT(records[1].values.at("kl"), 10 * kTolerance);
  EXPECT_GT(records[2].values.at("kl"), 10 * kTolerance);
}

/// With a single document nothing is lost.
TEST_F(AskingTest, one_document_is_the_prompt) {
  Task task{{sample("")}, agreeing(), Against::full};
  task.samples.front().documents.resize(1);
  for (const auto& record : measure(task, methods_of({"reuse,epic,cacheblend"})))
    EXPECT_LT(std::abs(record.values.at("kl")), kTolerance) << record.key.spec;
}

TEST_F(AskingTest, the_first_token_is_an_asks_own) {
  std::vector<FirstToken> seen;
  const Task task{{sample("")},
                  [&](Session&, const TokenizedSample& tokenized, std::vector<Cache>& caches, const auto&) {
                    seen = tokenized.first_tokens;
                    return std::vector<Record>(caches.size());
                  },
                  Against::full};
  using enum FirstToken;
  const auto methods = methods_of({"reuse,snapkv:window=8"}, {"100"});
  measure(task, methods);
  EXPECT_EQ(seen, (std::vector{full_attention, what_is_kept, full_attention}));
  measure(task, methods, Protocol::agnostic);
  EXPECT_EQ(seen, std::vector(3, what_is_kept));
}

TEST_F(AskingTest, a_budget_that_holds_all_documents_is_skipped) {
  const Task task{{sample("")}, answering()};
  const auto tokens = read_as(task.samples.front()).prompt.text.size();
  const auto record = measure(task, methods_of({"multi-infllm"}, {std::to_string(tokens)})).front();
  EXPECT_EQ(record.skipped, "the prompt has " + std::to_string(tokens) + " tokens, which fit into the budget of " +
                                std::to_string(tokens));
}

TEST_F(AskingTest, what_does_not_fit_is_an_error) {
  const Task task{{sample("")}, answering()};
  const auto said = test::refusal([&] { measure(task, methods_of({"samkv"}), Protocol::aware, {0, 500, {}, ""}); });
  EXPECT_NE(said.find("the model's context of 500"), std::string::npos) << said;
}

TEST_F(AskingTest, asking_without_documents_is_refused_before_anything_is_measured) {
  Evaluation evaluation;
  auto plain = sample("A text.");
  plain.documents.clear();
  plain.id = "7";
  evaluation.tasks = {{{sample(""), plain}, answering()}};
  evaluation.methods = methods_of({"full,samkv:update=overwrite"});
  evaluation.protocols = {Protocol::aware};
  test::TempFolder folder;
  RecordFile records(folder / "out", "1");
  EXPECT_EQ(usage_error([&] { run(session_, evaluation, records, {}); }),
            "samkv:update=overwrite combines documents, but the sample 7 of t has none");
  EXPECT_TRUE(records.records().empty());
}

TEST_F(AskingTest, further_metrics_are_values) {
  Task task{{sample("")}, answering()};
  auto& one = task.samples.front();
  one.max_tokens = 100;
  const auto answer = measure(task, methods_of({"full"})).front().answer;
  const auto letter = std::find_if(answer.begin(), answer.end(), [](char c) { return c >= 'a' && c <= 'z'; });
  ASSERT_NE(letter, answer.end());
  one.references = {std::string(1, *letter)};  // contained in the answer, but not as a word
  one.further = {Metric::contains_any, Metric::qa_f1_zh};
  const auto record = measure(task, methods_of({"full"})).front();
  EXPECT_EQ(record.values.at("contains_any"), 1);
  EXPECT_LT(record.values.at("qa_f1_zh"), 1);
  EXPECT_EQ(record.score, score(one, Metric::qa_f1, answer));
}

}  // namespace
}  // namespace winnow::eval
