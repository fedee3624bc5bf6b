// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/model_impl.h"
#include "eval/group.h"
#include "eval/measures/drawing.h"
#include "eval/measures/steps.h"
#include "eval/summary.h"
#include "eval/task_data.h"
#include "support/refusal.h"
#include "winnow/generate.h"
#include "winnow/questions.h"
#include "winnow/scheduler.h"

namespace winnow::eval {
namespace {

constexpr double kTolerance = 1e-4;  // of ln p: f32 throughout, sums in another order

CacheOptions cache(const char* spec, const char* budget) {
  CacheOptions out;
  out.spec = Spec::parse(spec);
  if (*budget != '\0') out.budget = Budget::parse(budget);
  out.kv_type = KvType::parse("f32");
  return out;
}

class MeasuresTest : public testing::Test {
 protected:
  std::vector<Record> measure(const Task& task, std::vector<Method> methods, Protocol protocol = Protocol::aware) {
    return Group(*data_.model(), task.samples.front(), protocol, std::move(methods)).measure(session_, task);
  }

  /// ln p of each of `tokens` after a prompt, each found by reading the whole text before it again.
  std::vector<double> by_reading(const PromptText& prompt, const std::vector<Token>& tokens) {
    const auto start = data_.model()->tokenize(prompt);
    auto all = start.text;
    all.insert(all.end(), start.question.begin(), start.question.end());
    std::vector<double> out;
    const CacheOptions full;
    for (const Token token : tokens) {
      out.push_back(log_probability(session_.prefill(all, std::span(&full, 1)).logits, token));
      all.push_back(token);
    }
    return out;
  }

  TaskData data_;
  Session session_{data_.model(), single()};
};

Sample raw(const std::string& text, const std::string& question) {
  Sample out;
  out.task = "t";
  out.prompt.text = text;
  out.prompt.question = question;
  out.prompt.format = PromptFormat::raw;
  out.references = {""};
  out.max_tokens = 1;
  return out;
}

TEST_F(MeasuresTest, an_answer_that_is_begun_is_gone_on_with) {
  auto sample = raw("A king. ", "Who?");
  const auto asked = tokenized(*data_.model(), sample, Protocol::aware, 0);
  sample.begun = "He is";
  const auto begun = tokenized(*data_.model(), sample, Protocol::aware, 0);
  auto expected = asked.prompt.question;
  for (const Token token : data_.model()->vocab().tokenize("He is")) expected.push_back(token);
  EXPECT_EQ(begun.prompt.question, expected);
  EXPECT_EQ(begun.prompt.text, asked.prompt.text);
  EXPECT_NE(hash_of(begun), hash_of(asked));
}

TEST_F(MeasuresTest, a_later_question_follows_an_answer_drawn_by_the_full_cache) {
  constexpr int kBetween = 5;
  auto sample = raw("A king. ", "Who?");
  sample.later = " And what?";
  sample.max_tokens = 4;
  const auto got = measure({{sample}, answering_later(kBetween), Against::full}, {CacheOptions()});

  const CacheOptions full;
  const auto asked = tokenized(*data_.model(), sample, Protocol::aware, 0).prompt;
  auto all = asked.text;
  all.insert(all.end(), asked.question.begin(), asked.question.end());
  const auto logits = [&] { return session_.prefill(all, std::span(&full, 1)).logits; };
  const auto ends = ends_of(*data_.model());
  Random random(sample.seed, sample.prompt.text, 0);
  for (int i = 0; i < kBetween; ++i) all.push_back(drawn(logits(), ends, random));
  for (const Token token : data_.model()->vocab().tokenize(sample.later)) all.push_back(token);
  std::string want;
  for (int i = 0; i < sample.max_tokens; ++i) {
    const auto now = logits();
    all.push_back(static_cast<Token>(std::ranges::max_element(now) - now.begin()));
    if (std::ranges::find(ends, all.back()) != ends.end()) break;
    want += data_.model()->vocab().text(all.back());
  }
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(got.front().answer, want);
}

TEST_F(MeasuresTest, log_probabilities_are_a_softmax) {
  const std::vector<float> logits = {0, 1, 2};
  const double sum = 1 + std::exp(1.0) + std::exp(2.0);
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(log_probability(logits, i), i - std::log(sum), 1e-6);
  EXPECT_NEAR(log_probability(std::vector<float>{1000, 0}, 1), -1000, 1e-3);
}

TEST_F(MeasuresTest, teacher_forcing_is_reading_again) {
  auto sample = raw("Once upon a time there was a king.", "");
  sample.references = {" He had a daughter"};
  const auto tokens = data_.model()->vocab().tokenize(sample.references.front());
  const auto expected = by_reading(sample.prompt, tokens);
  const auto records = measure({{sample}, teacher_forcing(5)}, {cache("full", ""), cache("streaming-llm", "6")});
  const auto& values = records[0].values;
  const auto mean = [&](std::size_t begin, std::size_t end) {
    double sum = 0;
    for (std::size_t i = begin; i < end; ++i) sum -= expected[i];
    return sum / static_cast<double>(end - begin);
  };
  EXPECT_NEAR(values.at("nll"), mean(1, tokens.size()), kTolerance);  // without the first one
  EXPECT_NEAR(values.at("perplexity"), std::exp(values.at("nll")), 1e-9);
  EXPECT_NEAR(values.at("nll@5"), mean(1, 5), kTolerance);
  EXPECT_NEAR(values.at("nll@10"), mean(5, 10), kTolerance);
  EXPECT_GT(std::abs(records[1].values.at("nll") - values.at("nll")), 10 * kTolerance) << "6 of 36 entries are not all";
}

TEST_F(MeasuresTest, choosing_takes_the_likeliest) {
  auto sample = raw("", "Which of these is it?");
  sample.choices = {{"a", "\nAnswer:", " alpha"}, {"b", "\nAnswer:", " it is b"}, {"c", "\nAnswer:", " q"}};
  std::vector<double> sums;
  std::vector<double> means;
  for (const auto& choice : sample.choices) {
    auto prompt = sample.prompt;
    prompt.question += choice.given;
    const auto all = by_reading(prompt, data_.model()->vocab().tokenize(choice.scored));
    double sum = 0;
    for (const double p : all) sum += p;
    sums.push_back(sum);
    means.push_back(sum / static_cast<double>(all.size()));
  }
  const auto likeliest = [&](const std::vector<double>& of) {
    return sample.choices[std::max_element(of.begin(), of.end()) - of.begin()].name;
  };
  sample.references = {likeliest(sums)};
  const auto by_sum = measure({{sample}, choosing(Likelihood::sum)}, {cache("full", ""), cache("full", "")});
  EXPECT_EQ(by_sum[0].answer, likeliest(sums));
  EXPECT_EQ(by_sum[1].score, 1);
  const auto by_mean = measure({{sample}, choosing(Likelihood::per_token)}, {cache("full", "")});
  EXPECT_EQ(by_mean[0].answer, likeliest(means));
  EXPECT_NE(likeliest(means), likeliest(sums)) << "the choices do not tell the two apart";
}

/// KL(p || q) of two softmaxes.
double divergence(const std::vector<float>& full, const std::vector<float>& other) {
  double sum = 0;
  for (std::size_t i = 0; i < full.size(); ++i) {
    const auto token = static_cast<Token>(i);
    const double log_p = log_probability(full, token);
    sum += std::exp(log_p) * (log_p - log_probability(other, token));
  }
  return sum;
}

/// The expected values come from single steps of each cache alone, without the measure.
TEST_F(MeasuresTest, divergence_by_position_is_that_of_steps_one_by_one) {
  constexpr int kAnswer = 150;
  const auto sample = raw("Once upon a time there was a king.", " And then");
  const std::vector<CacheOptions> caches = {CacheOptions(), cache("h2o", "12")};  // the full one is in f16
  for (const auto protocol : {Protocol::aware, Protocol::agnostic}) {
    const Task task{{sample}, agreeing({kAnswer, ForcedAnswer::Tokens::best}), Against::full};
    const auto values = measure(task, {caches[1]}, protocol).front().values;
    const auto prompt = data_.model()->tokenize(sample.prompt);
    auto start = Questions(session_, prompt.text, {prompt.question}, protocol, caches).ask(0);
    std::vector<double> kl;
    for (int i = 0; i < kAnswer; ++i) {
      kl.push_back(divergence(start.logits[0], start.logits[1]));
      const auto best = std::max_element(start.logits[0].begin(), start.logits[0].end()) - start.logits[0].begin();
      const auto token = static_cast<Token>(best);
      for (std::size_t c = 0; c < caches.size(); ++c) {
        Cache* const one = &start.caches[c];
        session_.step(std::span(&one, 1), std::span(&token, 1), start.logits[c]);
      }
    }
    const int first = protocol == Protocol::aware ? 1 : 0;
    const auto mean = [&](int begin, int end) {
      double sum = 0;
      for (int i = begin; i < end; ++i) sum += kl[i];
      return sum / (end - begin);
    };
    EXPECT_NEAR(values.at("kl"), mean(first, kAnswer), kTolerance);
    EXPECT_NEAR(values.at("kl@64"), mean(first, 64), kTolerance);
    EXPECT_NEAR(values.at("kl@128"), mean(64, 128), kTolerance);
    EXPECT_NEAR(values.at("kl@150"), mean(128, 150), kTolerance);
    EXPECT_EQ(values.size(), 4U) << "and nothing else";
    EXPECT_GT(values.at("kl"), 10 * kTolerance) << "12 of 45 entries are not all";
  }
}

TEST_F(MeasuresTest, drawn_answers_depend_on_the_seed_alone) {
  const auto kl = [&](std::uint32_t seed) {
    auto sample = raw("Once upon a time there was a king.", "");
    sample.seed = seed;
    const Task task{{sample}, agreeing({70, ForcedAnswer::Tokens::drawn}), Against::full};
    return measure(task, {cache("h2o", "12")}).front().values.at("kl");
  };
  EXPECT_EQ(kl(1), kl(1));
  EXPECT_NE(kl(1), kl(2));
}

TEST_F(MeasuresTest, tokens_are_drawn_by_their_share_of_what_may_come) {
  const std::vector<float> logits = {0, 1, 2, 5};
  const std::vector<Token> without = {3};
  Random random(1, "draws", 0);
  constexpr int kDraws = 20000;
  std::vector<int> counts(logits.size());
  for (int i = 0; i < kDraws; ++i) ++counts[drawn(logits, without, random)];
  const double sum = 1 + std::exp(1.0) + std::exp(2.0);
  for (int i = 0; i < 3; ++i) {
    const double p = std::exp(i) / sum;
    EXPECT_NEAR(counts[i], kDraws * p, 5 * std::sqrt(kDraws * p * (1 - p))) << i;
  }
  EXPECT_EQ(counts[3], 0);
  const auto ends = ends_of(*data_.model());
  EXPECT_EQ(ends, std::vector<Token>{2}) << "</s>";
}

TEST_F(MeasuresTest, timing_measures_each_cache_alone) {
  const auto records = measure({{raw(std::string(300, 'x'), " and?")}, timing(), Against::references, Sharing::alone},
                               {cache("snapkv:window=4", "30")});
  const auto& values = records.front().values;
  for (const char* name : {"ttft_ms", "decode_tps", "decode_tps_8", "peak_bytes"})
    EXPECT_GT(values.at(name), 0) << name;
  EXPECT_EQ(values.at("ttft_ms"), records.front().timings.prefill_ms);
  EXPECT_NEAR(records.front().score, 1 - 2 * 30.0 / 308, 0.02);
}

class ServingTest : public MeasuresTest {
 protected:
  static constexpr int kAnswer = 6;

  static Sample load(int requests) {
    Sample out = raw("Once upon a time there was a king who had a hat.", " Who?");
    out.requests = requests;
    out.max_tokens = kAnswer;
    return out;
  }

  Record served(int requests, std::size_t memory = std::numeric_limits<std::size_t>::max(),
                const char* spec = "snapkv:window=4", const char* budget = "12") {
    return measure({{load(requests)}, serving(memory)}, {cache(spec, budget)}).front();
  }

  /// Bytes that the scheduler reserves for one of the requests.
  std::size_t promise() {
    auto request = request_of(data_.model()->tokenize(load(1).prompt), Protocol::aware);
    request.keep = cache("snapkv:window=4", "12");
    request.generate.max_tokens = kAnswer;
    return Scheduler(session_, {}).bytes_of(request);
  }
};

TEST_F(ServingTest, all_requests_are_answered_in_full) {
  const auto record = served(5);
  EXPECT_EQ(record.values.at("batch"), 5);
  EXPECT_NEAR(record.values.at("tps") * record.values.at("e2e_ms") / 1000, 5 * kAnswer, 1e-6);
  EXPECT_LT(record.values.at("ttft_ms"), record.values.at("e2e_ms"));
  // The entries of the prompt and of the answer without its last token.
  EXPECT_EQ(record.entries, 12 + kAnswer - 1);
}

TEST_F(ServingTest, a_prompt_within_the_budget_counts) { EXPECT_EQ(served(2, 1U << 30U, "h2o", "500").skipped, ""); }

TEST_F(ServingTest, memory_limits_how_many_are_answered_together) {
  EXPECT_EQ(served(5, promise()).values.at("batch"), 1);
  const auto some = served(5, 3 * promise()).values.at("batch");
  EXPECT_GE(some, 3);
  EXPECT_LE(some, 5);
}

TEST_F(ServingTest, too_little_memory_for_one_request_is_no_score) {
  const auto record = served(5, promise() - 1);
  EXPECT_NE(record.skipped.find("all requests together may use at most"), std::string::npos) << record.skipped;
  EXPECT_TRUE(record.values.empty());
}

TEST_F(MeasuresTest, short_prompts_are_skipped_not_equal) {
  const Task task{{raw("7bytes.", "9-bytes-?")}, answering()};  // plus BOS and three tokens for the space before them
  const auto why = [&](const char* spec, const char* budget, Protocol protocol) {
    return measure(task, {cache(spec, budget)}, protocol).front().skipped;
  };
  EXPECT_EQ(why("snapkv:window=4", "15", Protocol::aware), "");
  EXPECT_EQ(why("snapkv:window=4", "20", Protocol::aware), "the prompt has 20 tokens, which fit into the budget of 20");
  EXPECT_EQ(why("snapkv:window=4", "15", Protocol::agnostic),
            "the prompt has 11 tokens, which fit into the budget of 15");
  EXPECT_EQ(why("snapkv:window=4", "25%", Protocol::aware), "");
  EXPECT_EQ(why("snapkv:window=4", "20%", Protocol::aware),
            "20% of 20 tokens are 4 entries, but snapkv:window=4 needs 5");
  EXPECT_EQ(why("full", "", Protocol::aware), "");
}

/// An entry of this network takes 2 (key and value) * 64 numbers * 4 bytes and its position, in 2 layers of 2 KV heads
/// each.
TEST_F(MeasuresTest, budgets_in_bytes_that_hold_a_prompt_are_skipped) {
  const Task task{{raw("7bytes.", "9-bytes-?")}, answering()};
  constexpr int kEntry = (2 * 64 * 4 + 4) * 2 * 2;
  const auto of = [&](int entries, Protocol protocol) {
    const auto budget = std::to_string(entries * kEntry / 1024.0) + "KiB";
    return measure(task, {cache("snapkv:window=4", budget.c_str())}, protocol).front();
  };
  EXPECT_EQ(of(19, Protocol::aware).skipped, "");
  EXPECT_EQ(of(19, Protocol::aware).entries, 19);
  EXPECT_NE(of(20, Protocol::aware).skipped.find("20 tokens"), std::string::npos) << of(20, Protocol::aware).skipped;
  EXPECT_EQ(of(10, Protocol::agnostic).skipped, "");
  EXPECT_NE(of(11, Protocol::agnostic).skipped.find("11 tokens"), std::string::npos);
  EXPECT_EQ(measure(task, {cache("snapkv:window=4", "100%")}).front().skipped.empty(), false);
}

class PromptLimitsTest : public MeasuresTest {
 protected:
  static PromptLimits limits(int context, int max_prompt = 0,
                             PromptLimits::Beyond beyond = PromptLimits::Beyond::refused) {
    return {max_prompt, context, beyond, ""};
  }
  /// 400 bytes, each different from its neighbours.
  static std::string text() {
    std::string out;
    while (out.size() < 400) out += std::to_string(1000 + out.size());
    return out;
  }
  Record measured(const PromptLimits& limits) {
    return Group(*data_.model(), sample_, Protocol::aware, {cache("full", "")}, limits)
        .measure(session_, {{sample_}, answering()})
        .front();
  }
  std::string refused(const PromptLimits& limits) {
    return test::refusal([&] { measured(limits); });
  }

  Sample sample_ = [] {
    Sample out = raw(text(), " And now?");
    out.max_tokens = 5;
    return out;
  }();
  const int tokens_ = [&] {
    const auto prompt = data_.model()->tokenize(sample_.prompt);
    return static_cast<int>(prompt.text.size() + prompt.question.size());
  }();
};

TEST_F(PromptLimitsTest, what_does_not_fit_is_an_error_with_both_numbers) {
  EXPECT_EQ(refused(limits(tokens_ + 5)), "");
  EXPECT_EQ(measured(limits(tokens_ + 5)).prompt_tokens, tokens_);
  const auto said = refused(limits(tokens_ + 4));
  EXPECT_NE(said.find(std::to_string(tokens_) + " tokens"), std::string::npos) << said;
  EXPECT_NE(said.find(std::to_string(tokens_ + 4)), std::string::npos) << said;
}

TEST_F(PromptLimitsTest, beyond_the_context_is_a_wish_that_the_record_names) {
  const auto record = measured(limits(200, 0, PromptLimits::Beyond::allowed));
  EXPECT_EQ(record.prompt_tokens, tokens_);
  EXPECT_EQ(record.beyond_context, 200);
  EXPECT_EQ(measured(limits(tokens_ + 5, 0, PromptLimits::Beyond::allowed)).beyond_context, 0);
  EXPECT_EQ(record.key, measured(limits(tokens_ + 5)).key) << "the same prompt, read alike";
}

TEST_F(PromptLimitsTest, the_middle_is_cut_and_the_record_says_so) {
  const auto record = measured(limits(120, 100));
  EXPECT_EQ(record.prompt_tokens, 100);
  EXPECT_EQ(record.cut_tokens, tokens_ - 100);
  EXPECT_EQ(record.key.max_prompt, 100);
  EXPECT_EQ(record.beyond_context, 0);
  // The expected prompt: the first 50 and the last 50 tokens.
  auto prompt = data_.model()->tokenize(sample_.prompt);
  auto all = prompt.text;
  all.insert(all.end(), prompt.question.begin(), prompt.question.end());
  all.erase(all.begin() + 50, all.end() - 50);
  const CacheOptions full = cache("full", "");
  auto read = session_.prefill(all, std::span(&full, 1));
  GenerateOptions options;
  options.max_tokens = sample_.max_tokens;
  Cache* const one = &read.caches.front();
  EXPECT_EQ(record.answer, generate(session_, std::span(&one, 1), std::span(&read.logits, 1), options).front().text);
  EXPECT_EQ(measured(limits(1000, tokens_)).cut_tokens, 0);
  EXPECT_NE(refused(limits(1000, 5)).find("the question alone"), std::string::npos);
  EXPECT_NE(refused(limits(102, 100)).find("100 tokens"), std::string::npos) << "with its answer";
}

TEST_F(PromptLimitsTest, another_limit_is_another_record) {
  const auto whole = measured(limits(1000));
  const auto uncut = measured(limits(1000, 900));
  const auto cut = measured(limits(1000, 100));
  EXPECT_EQ(whole.key.prompt_hash, uncut.key.prompt_hash);
  EXPECT_NE(whole.key, uncut.key);
  EXPECT_NE(uncut.key, cut.key);
  EXPECT_NE(whole.group, uncut.group);
  EXPECT_NE(protocol_of(whole.key), protocol_of(uncut.key));
}

}  // namespace
}  // namespace winnow::eval
