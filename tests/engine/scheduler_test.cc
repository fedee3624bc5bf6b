// SPDX-License-Identifier: Apache-2.0
// Other requests do not change an answer. The expected answers come from the session's own functions for reading,
// extending and decoding, and are sampled greedily here.
#include "winnow/scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <utility>

#include "base/as_size.h"
#include "engine/greedy_answer.h"
#include "engine/sampler.h"
#include "network/bf16_kernel.h"
#include "support/cache_options.h"
#include "support/random_tokens.h"
#include "support/some_calibration.h"
#include "support/temp.h"
#include "support/tiny_gguf.h"
#include "winnow/error.h"
#include "winnow/methods.h"

namespace winnow {
namespace {

using test::Answer;
using test::answer_of;
using test::options_of;

/// Contents of a request.
struct Asked {
  CacheOptions keep;
  std::vector<Token> text;
  std::vector<Token> question;
  int tokens;
};

class SchedulerTest : public testing::Test {
 public:
  explicit SchedulerTest(const test::TinyModel& tiny = tiny_of(GGML_TYPE_F32)) {
    write_tiny_gguf(tiny, folder_ / "tiny.gguf");
    model_ = Model::load(folder_ / "tiny.gguf");
    calibration_ = test::calibrated(folder_ / "model.cal", *model_);
  }

  static test::TinyModel tiny_of(ggml_type weights) {
    test::TinyModel tiny;
    tiny.n_head = 6;
    tiny.n_head_kv = 2;
    tiny.type = weights;
    return tiny;
  }

  std::vector<Token> tokens(int n, unsigned seed) const { return test::random_tokens(n, model_->info().n_vocab, seed); }

  /// Every method with a question that is read with the text, and with one that is read after it.
  std::vector<Asked> every_method(unsigned seed) const {
    std::mt19937 random(seed);
    const auto between = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
    std::vector<std::string> specs = {"lookahead(snapkv)",
                                      "ada(lookahead(h2o))",
                                      "kvzip:rank=model",
                                      "refit(snapkv)",
                                      "refit(kvzip:rank=model)",
                                      "refit(ada(kvzip(span(snapkv:window=8))):over=model)",
                                      "quest(ada(refit(snapkv))):dense=0",
                                      "kvzap:when=step",
                                      "ada(chunk(snapkv)):over=model",
                                      "triattention:buffer=3",
                                      "ada(r-kv:buffer=3,window=2):over=model",
                                      "decoding(ada(span(snapkv)):over=model)"};
    for (const auto& method : list_methods()) specs.push_back(method.name);
    std::vector<Asked> out;
    for (const auto& spec : specs) {
      for (const bool comes_after : {false, true}) {
        out.push_back({options_of(spec, "64"), tokens(between(20, 200), random()),
                       comes_after ? tokens(between(1, 9), random()) : std::vector<Token>(), between(1, 12)});
      }
    }
    return out;
  }

  static Answer alone(Session& session, const Asked& asked) {
    auto read = session.prefill(asked.text, std::span(&asked.keep, 1));
    auto& cache = read.caches.front();
    auto logits = asked.question.empty() ? read.logits : session.extend(cache, asked.question);
    return test::greedy_answer(session, cache, std::move(logits), asked.tokens);
  }

  static Request request_of(const Asked& asked, std::function<void(RequestEnd)> on_end) {
    Request out;
    out.text().tokens = asked.text;
    out.keep = asked.keep;
    out.question = asked.question;
    out.generate.max_tokens = asked.tokens;
    out.generate.end = EndOfSequence::ignored;
    out.generate.logprobs = test::kLogprobs;
    out.events.on_end = std::move(on_end);
    return out;
  }

  test::TempFolder folder_;
  std::string calibration_;
  std::shared_ptr<const Model> model_;
};

/// Adds and cancels requests at random.
class RandomLoad {
 public:
  RandomLoad(Scheduler& scheduler, unsigned seed) : scheduler_(scheduler), random_(seed) {}

  /// Adds all requests in a random order and runs them; one in `cancelled` is cancelled at a random moment.
  template <class Make>
  void run(std::size_t count, unsigned cancelled, const Make& make) {
    std::vector<std::size_t> order(count);
    for (std::size_t i = 0; i < count; ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), random_);
    for (std::size_t next = 0; next < count || busy_;) {
      for (; next < count && random_() % 3 == 0; ++next) {
        const auto id = scheduler_.add(make(order[next]));
        if (cancelled > 0 && random_() % cancelled == 0) cancel_in_[id] = static_cast<int>(random_() % 60);
      }
      busy_ = scheduler_.advance();
      for (auto& [id, steps] : cancel_in_) {
        if (steps-- == 0) scheduler_.cancel(id);
      }
    }
  }

 private:
  Scheduler& scheduler_;
  std::mt19937 random_;
  std::map<Scheduler::Id, int> cancel_in_;
  bool busy_ = false;
};

/// Expects that requests under random load get the same answers as alone. `parallel`: numbers of requests that run at a
/// time.
void expect_as_alone(Session& session, const std::vector<Asked>& asked, std::span<const int> parallel) {
  std::vector<Answer> expected;
  for (const auto& one : asked) expected.push_back(SchedulerTest::alone(session, one));
  for (unsigned seed = 0; seed < parallel.size(); ++seed) {
    Scheduler scheduler(session, {.parallel = parallel[seed], .max_itl = std::chrono::milliseconds(1 + seed)});
    std::size_t finished = 0;
    std::size_t ended = 0;
    RandomLoad(scheduler, seed).run(asked.size(), seed == 1 ? 0 : 4, [&](std::size_t i) {
      return SchedulerTest::request_of(asked[i], [&, i](RequestEnd end) {
        ++ended;
        ASSERT_EQ(end.error, nullptr);
        if (end.answers.front().finish == FinishReason::interrupted) return;
        ++finished;
        EXPECT_TRUE(answer_of(end) == expected[i]) << asked[i].keep.spec.print() << " seed " << seed;
      });
    });
    EXPECT_EQ(ended, asked.size());
    EXPECT_GE(finished, asked.size() / 2);
    EXPECT_EQ(scheduler.promised(), 0);
    EXPECT_TRUE(scheduler.states().empty());
  }
}

struct Case {
  const char* name;
  Precision precision;
  Pack pack;
  ggml_type weights;
};

class SchedulerCase : public SchedulerTest, public testing::WithParamInterface<Case> {
 protected:
  SchedulerCase() : SchedulerTest(tiny_of(GetParam().weights)) {}
};

TEST_P(SchedulerCase, answers_are_those_of_each_request_alone) {
  if (GetParam().pack == Pack::resident && !network::Bf16Kernel::available()) GTEST_SKIP() << "no bf16 products";
  Session session(model_, {2, GetParam().precision, 32, GetParam().pack, calibration_});
  const auto before = session.memory().held;
  expect_as_alone(session, every_method(7), std::vector{64, 5, 2});
  EXPECT_LE(session.memory().held, before + (1 << 20)) << "what requests held is free";
}

INSTANTIATE_TEST_SUITE_P(, SchedulerCase,
                         testing::Values(Case{"f32", Precision::f32, Pack::automatic, GGML_TYPE_F32},
                                         Case{"automatic", Precision::automatic, Pack::automatic, GGML_TYPE_F32},
                                         Case{"f16", Precision::automatic, Pack::automatic, GGML_TYPE_F16},
                                         Case{"q8_0", Precision::automatic, Pack::automatic, GGML_TYPE_Q8_0},
                                         Case{"resident", Precision::automatic, Pack::resident, GGML_TYPE_F32}),
                         [](const auto& p) { return p.param.name; });

class SchedulerWithWindows : public SchedulerTest {
 public:
  SchedulerWithWindows() : SchedulerTest(test::tiny_with_windows(24, {true, false, true, false})) {}
};

TEST_F(SchedulerWithWindows, answers_are_those_of_each_request_alone) {
  Session session(model_, {2, Precision::f32, 32, Pack::automatic, calibration_});
  const auto before = session.memory().held;
  expect_as_alone(session, every_method(8), std::vector{64, 5});
  EXPECT_LE(session.memory().held, before + (1 << 20)) << "what requests held is free";
}

TEST(SchedulerRealModel, answers_are_those_of_each_request_alone) {
  const auto path = test::real_model();
  if (!path) GTEST_SKIP() << "WINNOW_TEST_MODEL is not set";
  const auto model = Model::load(*path);
  Session session(model, {});
  std::mt19937 random(5);
  std::vector<Asked> asked;
  for (const char* spec : {"full", "snapkv", "ada-snapkv", "h2o", "ems", "ahakv", "quest", "ada(kvzip)"}) {
    const auto length = [&](int most) { return std::uniform_int_distribution<int>(most / 3, most)(random); };
    const auto tokens = [&](int n) { return test::random_tokens(n, model->info().n_vocab, random()); };
    const auto keep = options_of(spec, std::string(spec) == "full" ? "" : "64");
    asked.push_back({keep, tokens(length(200)), {}, 12});
    asked.push_back({keep, tokens(length(200)), tokens(length(30)), 12});
  }
  expect_as_alone(session, asked, std::vector{16, 3});
}

TEST_F(SchedulerTest, what_a_request_holds_is_what_it_holds_alone_and_was_promised) {
  Session session(model_, {2, Precision::automatic, 32, Pack::automatic, calibration_});
  for (const auto& one : every_method(3)) {
    auto read = session.prefill(one.text, std::span(&one.keep, 1));
    const auto held = read.caches.front().stats().bytes_held;
    Scheduler scheduler(session, {});
    auto request = request_of(one, {});
    const auto promised = scheduler.bytes_of(request);
    std::size_t after_text = 0;
    request.events.on_text = [&](const Cache& cache, std::span<const float>) { after_text = cache.stats().bytes_held; };
    scheduler.add(std::move(request));
    session.reset_peak();
    const auto before = session.memory().held;
    std::size_t most = 0;
    while (scheduler.advance()) most = std::max(most, scheduler.states().front().bytes_held);
    EXPECT_EQ(after_text, held) << one.keep.spec.print();
    EXPECT_LE(most, promised) << one.keep.spec.print();
    EXPECT_LE(session.memory().peak - before, promised + (1 << 20)) << one.keep.spec.print();
  }
}

TEST_F(SchedulerTest, what_a_request_holds_is_seen_while_its_text_is_read) {
  Session session(model_, {1, Precision::f32, 16});
  const auto& info = model_->info();
  const auto heads = as_size(info.n_head_kv);
  for (const auto& [keep, entries] : {std::pair(options_of("full"), 80U), std::pair(options_of("snapkv", "40"), 40U)}) {
    Scheduler scheduler(session, {});
    scheduler.add(request_of({keep, tokens(80, 1), {}, 8}, {}));
    std::set<std::size_t> seen;
    while (scheduler.advance()) {
      const auto state = scheduler.states().front();
      if (state.phase == RequestState::Phase::reading) seen.insert(state.entries_held);
      EXPECT_EQ(state.entries_held == 0, state.bytes_held == 0);
      if (state.phase != RequestState::Phase::answering) continue;
      EXPECT_EQ(state.entries_held, as_size(info.n_layer) * heads * (entries + as_size(state.generated) - 1));
    }
    for (const auto count : seen) EXPECT_EQ(count % (heads * entries), 0U) << keep.spec.print();
    EXPECT_GT(seen.size(), 1U) << "it grows with the layers";
  }
}

TEST_F(SchedulerTest, requests_wait_for_the_memory_that_they_need) {
  Session session(model_, {2, Precision::automatic, 32, Pack::automatic, calibration_});
  const Asked asked{options_of("snapkv", "40"), tokens(100, 1), {}, 6};
  const auto expected = alone(session, asked);
  const auto one = Scheduler(session, {}).bytes_of(request_of(asked, {}));
  Scheduler scheduler(session, {.memory = 2 * one});
  std::size_t right = 0;
  for (int i = 0; i < 9; ++i)
    scheduler.add(request_of(asked, [&](const RequestEnd& end) { right += answer_of(end) == expected ? 1 : 0; }));
  std::size_t together = 0;
  while (scheduler.advance()) {
    EXPECT_LE(scheduler.promised(), 2 * one);
    const auto states = scheduler.states();
    const auto waits = [](const auto& state) { return state.phase == RequestState::Phase::waiting; };
    together = std::max(together, states.size() - as_size(std::count_if(states.begin(), states.end(), waits)));
  }
  EXPECT_GE(together, 2) << "what has been read needs less";
  EXPECT_EQ(right, 9);
  Scheduler small(session, {.memory = one - 1});
  EXPECT_THROW(small.add(request_of(asked, {})), MemoryError);
}

TEST_F(SchedulerTest, answers_are_as_long_as_memory_holds_and_no_longer) {
  Session session(model_, {2, Precision::automatic, 32, Pack::automatic, calibration_});
  for (const char* spec : {"full", "snapkv", "h2o", "quest", "kvzip"}) {
    const Asked asked{options_of(spec, std::string(spec) == "full" ? "" : "40"), tokens(100, 1), tokens(9, 2), 90};
    const auto bytes_of = [&](int most) {
      auto request = request_of(asked, {});
      request.generate.max_tokens = most;
      return Scheduler(session, {}).bytes_of(request);
    };
    for (const int holds : {1, 2, 33, 89, 90, 200}) {
      const auto memory = bytes_of(holds);
      int longest = 90;
      while (longest > 1 && bytes_of(longest) > memory) --longest;
      Scheduler scheduler(session, {.memory = memory});
      auto request = request_of(asked, {});
      request.generate.min_tokens = 50;
      scheduler.fit_answers(request);
      EXPECT_EQ(request.generate.max_tokens, longest) << spec << ", " << holds;
      EXPECT_EQ(request.generate.min_tokens, std::min(50, longest));
      std::size_t generated = 0;
      request.events.on_end = [&](const RequestEnd& end) { generated = end.answers.front().tokens.size(); };
      scheduler.add(std::move(request));
      auto other = request_of(asked, {});
      scheduler.fit_answers(other);
      EXPECT_EQ(other.generate.max_tokens, longest) << "what else there is does not count";
      while (scheduler.advance()) continue;
      EXPECT_EQ(generated, as_size(longest)) << spec << ", " << holds;
    }
    Scheduler none(session, {.memory = 1000});
    auto request = request_of(asked, {});
    none.fit_answers(request);
    EXPECT_EQ(request.generate.max_tokens, 1);
    EXPECT_THROW(none.add(std::move(request)), MemoryError);
  }
}

TEST_F(SchedulerTest, a_request_that_cannot_be_says_why) {
  Session session(model_, {});
  Scheduler scheduler(session, {});
  const auto refused = [&](auto change) {
    auto request = request_of({options_of("full"), tokens(5, 1), {}, 2}, {});
    change(request);
    try {
      scheduler.add(std::move(request));
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(refused([](Request& r) { r.text().tokens.clear(); }).find("empty"), std::string::npos);
  EXPECT_NE(refused([](Request& r) { r.text().tokens[1] = -1; }).find("token -1"), std::string::npos);
  EXPECT_NE(refused([](Request& r) { r.question = {1 << 30}; }).find("vocabulary"), std::string::npos);
  EXPECT_NE(refused([](Request& r) { r.answers = 0; }).find("0 answers"), std::string::npos);
  EXPECT_NE(refused([](Request& r) { r.keep = options_of("snapkv"); }).find("budget"), std::string::npos);
  EXPECT_NE(refused([](Request& r) { r.generate.sampling.top_p = 2; }).find("top-p"), std::string::npos);
  EXPECT_NE(refused([](Request& r) { r.generate.sampling.logit_bias = {{-5, 1.0F}}; }).find("-5"), std::string::npos);
  EXPECT_FALSE(scheduler.advance());
}

TEST_F(SchedulerTest, several_answers_of_one_prompt_are_those_of_as_many_seeds) {
  Session session(model_, {});
  Scheduler scheduler(session, {});
  const auto tokens_of = [&](int answers, unsigned seed) {
    auto request = request_of({options_of("h2o", "40"), tokens(60, 1), {}, 10}, {});
    request.generate.sampling.temperature = 1.5;
    request.generate.sampling.seed = seed;
    request.answers = answers;
    std::vector<std::vector<Token>> out;
    request.events.on_end = [&](const RequestEnd& end) {
      for (const auto& answer : end.answers) out.push_back(answer.tokens);
    };
    scheduler.add(std::move(request));
    while (scheduler.advance()) continue;
    return out;
  };
  const auto together = tokens_of(3, 11);
  std::vector<std::vector<Token>> apart;
  for (const unsigned seed : {11U, 12U, 13U}) apart.push_back(tokens_of(1, seed).front());
  EXPECT_EQ(together, apart);
  EXPECT_NE(together[0], together[1]);
  constexpr unsigned kRandomInLibllama = 0xFFFFFFFF;
  EXPECT_EQ(tokens_of(1, kRandomInLibllama), tokens_of(1, kRandomInLibllama));
}

TEST_F(SchedulerTest, answers_get_on_while_a_long_prompt_is_read) {
  Session session(model_, {1, Precision::f32, 16});
  Scheduler scheduler(session, {.max_itl = std::chrono::milliseconds(0)});
  int generated = 0;
  auto answering = request_of({options_of("full"), tokens(5, 1), {}, 30}, {});
  answering.events.on_token = [&](int, const GeneratedToken&, std::string_view) { ++generated; };
  scheduler.add(std::move(answering));
  while (generated == 0) scheduler.advance();
  EXPECT_EQ(scheduler.longest_quantum_ms(), 0) << "nobody has waited for the first prompt";
  bool read = false;
  auto reading = request_of({options_of("full"), tokens(400, 2), {}, 1}, {});
  reading.events.on_text = [&](const Cache&, std::span<const float>) { read = true; };
  scheduler.add(std::move(reading));
  for (int i = 1; i < 20; ++i) {
    scheduler.advance();
    EXPECT_EQ(generated, i + 1) << "one token for each quantum";
    EXPECT_FALSE(read);
  }
  EXPECT_GT(scheduler.longest_quantum_ms(), 0);
}

TEST_F(SchedulerTest, short_prompts_are_read_before_long_ones) {
  Session session(model_, {1, Precision::f32, 16});
  Scheduler scheduler(session, {});
  std::vector<int> order;
  const auto add = [&](int length) {
    scheduler.add(request_of({options_of("full"), tokens(length, 2), {}, 1},
                             [&, length](const RequestEnd&) { order.push_back(length); }));
  };
  add(2000);
  for (int i = 0; i < 5; ++i) scheduler.advance();
  add(30);
  while (scheduler.advance()) continue;
  EXPECT_EQ(order, (std::vector<int>{30, 2000}));
}

TEST_F(SchedulerTest, keys_share_evenly_and_priorities_go_first_within_a_key) {
  Session session(model_, {});
  Scheduler scheduler(session, {.parallel = 1});
  std::string order;
  const auto add = [&](const std::string& key, char name, int priority) {
    auto request = request_of({options_of("full"), tokens(20, 2), {}, 2}, {});
    request.key = key;
    request.priority = priority;
    request.events.on_end = [&order, name](const RequestEnd&) { order += name; };
    scheduler.add(std::move(request));
  };
  for (const char name : {'a', 'b', 'c', 'd'}) add("first", name, 0);
  add("first", 'e', 1);
  scheduler.advance();  // e has begun
  for (const char name : {'x', 'y'}) add("second", name, 0);
  while (scheduler.advance()) continue;
  EXPECT_EQ(order, "exaybcd");
}

TEST_F(SchedulerTest, a_stored_text_gives_the_answers_of_one_that_is_read) {
  Session session(model_, {2, Precision::automatic, 32, Pack::automatic, calibration_});
  for (const auto& method : list_methods()) {
    Asked asked{options_of(method.name, "64"), tokens(150, 4), tokens(5, 5), 8};
    const auto expected = alone(session, asked);
    Scheduler scheduler(session, {.texts = {.memory = 100 << 20}});
    std::vector<int> cached;
    const auto add = [&](const Asked& one, const char* salt, const Answer& right) {
      auto request = request_of(one, [&, right](const RequestEnd& end) {
        cached.push_back(end.cached_tokens);
        EXPECT_TRUE(answer_of(end) == right) << method.name;
      });
      request.text().cache_salt = salt;
      scheduler.add(std::move(request));
    };
    add(asked, "mine", expected);
    add(asked, "mine", expected);  // waits until the first one's text has been read
    while (scheduler.advance()) continue;
    EXPECT_EQ(cached, (std::vector{0, 150}));
    auto other = asked;
    other.question = tokens(7, 6);
    add(other, "mine", alone(session, other));
    while (scheduler.advance()) continue;
    add(asked, "yours", expected);
    while (scheduler.advance()) continue;
    other.text.pop_back();
    add(other, "mine", alone(session, other));
    while (scheduler.advance()) continue;
    EXPECT_EQ(cached, (std::vector{0, 150, 150, 0, 0}));
    EXPECT_EQ(scheduler.prefix_use().found, 300);
    EXPECT_EQ(scheduler.prefix_use().asked, 749);
    EXPECT_EQ(scheduler.prefix_use().entries, 3);
  }
}

TEST_F(SchedulerTest, log_probabilities_of_the_prompt_are_those_of_its_beginnings) {
  Session session(model_, {2, Precision::f32, 32, Pack::automatic, calibration_});
  const auto text = tokens(140, 9);
  const auto full = options_of("full", "", "f32");
  for (const char* spec : {"full", "snapkv", "lookahead(snapkv)", "kvzip:chunk=50"}) {
    Scheduler scheduler(session, {});
    std::vector<GeneratedToken> scored;
    auto request = request_of({options_of(spec, std::string(spec) == "full" ? "" : "64", "f32"), text, {}, 0},
                              [&](RequestEnd end) { scored = std::move(end.prompt_logprobs); });
    request.text().prompt_logprobs = 2;
    scheduler.add(std::move(request));
    while (scheduler.advance()) continue;
    ASSERT_EQ(scored.size(), text.size() - 1);
    for (const std::size_t i : {1U, 2U, 63U, 64U, 65U, 100U, 139U}) {
      const auto read = session.prefill(std::span(text).first(i), std::span(&full, 1));
      const auto expected = engine::log_probabilities(read.logits, text[i], 2);
      EXPECT_EQ(scored[i - 1].chosen.id, text[i]);
      EXPECT_NEAR(scored[i - 1].chosen.logprob, expected.chosen.logprob, 1e-4) << i;
      EXPECT_EQ(scored[i - 1].top[0].id, expected.top[0].id);
      EXPECT_EQ(scored[i - 1].top.size(), 2);
    }
  }
}

/// Compressed texts get half of the memory. With chunks of 32 tokens, nothing else is stored.
TEST_F(SchedulerTest, texts_that_were_used_long_ago_make_room) {
  Session session(model_, {.chunk = 32});
  const auto question = tokens(3, 4);
  const auto bytes_of_one = [&] {
    Scheduler scheduler(session, {.texts = {.memory = 100 << 20}});
    auto request = request_of({options_of("full"), tokens(100, 1), question, 1}, {});
    request.text().cache_salt = "";
    scheduler.add(std::move(request));
    while (scheduler.advance()) continue;
    return scheduler.prefix_use().bytes;
  }();
  const auto before = session.memory().held;
  Scheduler scheduler(session, {.texts = {.memory = 2 * (2 * bytes_of_one + bytes_of_one / 2)}});
  std::vector<int> cached;
  for (const unsigned text : {1U, 2U, 1U, 3U, 1U, 2U}) {
    auto request = request_of({options_of("full"), tokens(100, text), question, 1},
                              [&](const RequestEnd& end) { cached.push_back(end.cached_tokens); });
    request.text().cache_salt = "";
    scheduler.add(std::move(request));
    while (scheduler.advance()) continue;
    EXPECT_LE(session.memory().held - before, 2 * bytes_of_one + (1 << 20));
  }
  EXPECT_EQ(cached, (std::vector{0, 0, 100, 0, 100, 0}));
}

TEST_F(SchedulerTest, a_key_that_asks_again_and_again_owes_what_it_has_used) {
  Session session(model_, {});
  Scheduler scheduler(session, {.parallel = 1});
  std::map<std::string, int> read;
  std::function<void(const std::string&, int)> ask = [&](const std::string& key, int length) {
    auto request = request_of({options_of("full"), tokens(length, 2), {}, 1}, [&, key, length](const RequestEnd&) {
      read[key] += length;
      if (read["long"] + read["short"] < 6000) ask(key, length);
    });
    request.key = key;
    scheduler.add(std::move(request));
  };
  ask("long", 500);
  ask("short", 20);
  while (scheduler.advance()) continue;
  EXPECT_NEAR(read["long"], read["short"], 600);
}

TEST_F(SchedulerTest, a_stored_text_does_not_wait_for_those_that_are_read) {
  Session session(model_, {1, Precision::f32, 16});
  Scheduler scheduler(session, {.texts = {.memory = 100 << 20}});
  std::string order;
  const auto add = [&](int length, const char* salt, char name) {
    auto request = request_of({options_of("full"), tokens(length, 2), tokens(3, 3), 1},
                              [&order, name](const RequestEnd&) { order += name; });
    if (salt != nullptr) request.text().cache_salt = salt;
    scheduler.add(std::move(request));
  };
  add(300, "", 'a');
  while (scheduler.advance()) continue;
  add(1500, nullptr, 'b');
  add(1500, nullptr, 'c');
  scheduler.advance();
  add(300, "", 'd');
  while (scheduler.advance()) continue;
  EXPECT_EQ(order.substr(0, 2), "ad");
}

TEST_F(SchedulerTest, without_room_for_texts_equal_ones_do_not_wait_for_each_other) {
  Session session(model_, {1, Precision::f32, 16});
  Scheduler scheduler(session, {});
  for (int i = 0; i < 2; ++i) {
    auto request = request_of({options_of("full"), tokens(30, 2), {}, 20}, {});
    request.text().cache_salt = "";
    scheduler.add(std::move(request));
  }
  bool both = false;
  while (scheduler.advance()) {
    const auto states = scheduler.states();
    both = both || std::count_if(states.begin(), states.end(),
                                 [](const auto& s) { return s.phase == RequestState::Phase::answering; }) == 2;
  }
  EXPECT_TRUE(both);
  EXPECT_EQ(scheduler.prefix_use().entries, 0);
}

TEST_F(SchedulerTest, a_refused_request_keeps_its_cache) {
  Session session(model_, {});
  const auto full = options_of("full");
  auto read = session.prefill(tokens(30, 1), std::span(&full, 1));
  Request request;
  request.source = RequestCache{std::move(read.caches.front())};
  request.question = tokens(4, 2);
  request.generate.max_tokens = 1 << 20;
  Scheduler small(session, {.memory = 1 << 16});
  EXPECT_THROW(small.add(std::move(request)), MemoryError);
  EXPECT_EQ(std::get<RequestCache>(request.source).cache.stats().tokens_seen, 30);
  request.generate.max_tokens = 3;
  int seen = 0;
  request.events.on_end = [&](const RequestEnd& end) { seen = end.caches.front().stats().tokens_seen; };
  Scheduler scheduler(session, {});
  scheduler.add(std::move(request));
  while (scheduler.advance()) continue;
  EXPECT_EQ(seen, 30 + 4 + 2) << "all but the answer's last token";
}

TEST_F(SchedulerTest, nothing_is_told_after_a_request_was_cancelled) {
  Session session(model_, {});
  for (const bool at_text : {true, false}) {
    Scheduler scheduler(session, {});
    Scheduler::Id id = 0;
    std::string told;
    auto request = request_of({options_of("full"), tokens(20, 2), {}, 5}, [&](const RequestEnd&) { told += "end"; });
    request.answers = 2;
    request.events.on_text = [&](const Cache&, std::span<const float>) {
      told += "text ";
      if (at_text) scheduler.cancel(id);
    };
    request.events.on_prompt = [&](const Cache&, std::span<const float>) { told += "prompt "; };
    request.events.on_token = [&](int, const GeneratedToken&, std::string_view) {
      told += "token ";
      scheduler.cancel(id);
    };
    id = scheduler.add(std::move(request));
    while (scheduler.advance()) continue;
    EXPECT_EQ(told, at_text ? "text end" : "text prompt token end");
  }
}

TEST_F(SchedulerTest, an_event_that_throws_ends_its_request_alone) {
  Session session(model_, {2, Precision::automatic, 32, Pack::automatic, calibration_});
  const Asked asked{options_of("snapkv", "64"), tokens(90, 4), tokens(5, 5), 8};
  const auto expected = alone(session, asked);
  for (const int event : {0, 1, 2}) {
    Scheduler scheduler(session, {});
    std::string ends;
    auto throwing = request_of(asked, [&](const RequestEnd& end) { ends += end.error ? "error " : "none "; });
    const auto fail = [&](int now) {
      if (now == event) throw InputError("a broken pipe");
    };
    throwing.events.on_text = [&](const Cache&, std::span<const float>) { fail(0); };
    throwing.events.on_prompt = [&](const Cache&, std::span<const float>) { fail(1); };
    throwing.events.on_token = [&](int, const GeneratedToken&, std::string_view) { fail(2); };
    scheduler.add(std::move(throwing));
    scheduler.add(
        request_of(asked, [&](const RequestEnd& end) { ends += answer_of(end) == expected ? "right" : "wrong"; }));
    while (scheduler.advance()) continue;
    EXPECT_EQ(ends, "error right");
  }
}

TEST_F(SchedulerTest, generate_gives_caches_back_when_its_listener_throws) {
  Session session(model_, {});
  const auto full = options_of("full");
  std::vector<Cache> caches;
  std::vector<std::vector<float>> logits;
  for (const unsigned seed : {1U, 2U}) {
    auto read = session.prefill(tokens(30, seed), std::span(&full, 1));
    caches.push_back(std::move(read.caches.front()));
    logits.push_back(std::move(read.logits));
  }
  std::vector<Cache*> both = {&caches[0], &caches[1]};
  GenerateOptions options;
  options.end = EndOfSequence::ignored;
  const auto broken = [](int, std::string_view) { throw InputError("a broken pipe"); };
  EXPECT_THROW(generate(session, both, logits, options, broken), InputError);
  for (const auto& cache : caches) EXPECT_GE(cache.stats().tokens_seen, 30);
  EXPECT_THROW(generate(session, both, std::span(logits).first(1), options), UsageError);
  EXPECT_GE(caches[1].stats().tokens_seen, 30);
}

TEST_F(SchedulerTest, methods_that_evict_at_every_step_hold_what_was_promised_in_long_answers) {
  Session session(model_, {2, Precision::automatic, 32, Pack::automatic, calibration_});
  for (const char* spec : {"ems", "h2o", "tova", "ahakv", "cam", "streaming-llm"}) {
    for (const int length : {30, 64, 300}) {
      Scheduler scheduler(session, {});
      auto request = request_of({options_of(spec, "64"), tokens(length, 3), {}, 400}, {});
      const auto promised = scheduler.bytes_of(request);
      scheduler.add(std::move(request));
      std::size_t most = 0;
      while (scheduler.advance()) most = std::max(most, scheduler.states().front().bytes_held);
      EXPECT_LE(most, promised) << spec << " after " << length << " tokens";
    }
  }
}

TEST_F(SchedulerTest, events_may_add_and_cancel) {
  Session session(model_, {});
  Scheduler scheduler(session, {});
  Scheduler::Id first = 0;
  std::vector<FinishReason> ends;
  auto request = request_of({options_of("full"), tokens(20, 2), {}, 50}, [&](const RequestEnd& end) {
    ends.push_back(end.answers.front().finish);
    scheduler.add(request_of({options_of("full"), tokens(20, 2), {}, 2},
                             [&](const RequestEnd& next) { ends.push_back(next.answers.front().finish); }));
  });
  request.events.on_token = [&](int, const GeneratedToken&, std::string_view) { scheduler.cancel(first); };
  first = scheduler.add(std::move(request));
  while (scheduler.advance()) continue;
  EXPECT_EQ(ends, (std::vector{FinishReason::interrupted, FinishReason::length}));
}

TEST_F(SchedulerTest, a_stopped_session_ends_all_requests_with_what_there_is) {
  Session session(model_, {});
  bool stop = false;
  session.on_stop([&] { return stop; });
  Scheduler scheduler(session, {});
  int ended = 0;
  for (int i = 0; i < 3; ++i) {
    auto request = request_of({options_of("full"), tokens(20, 2), {}, 50}, [&](const RequestEnd& end) {
      ++ended;
      EXPECT_EQ(end.answers.front().finish, FinishReason::interrupted);
    });
    request.events.on_token = [&](int, const GeneratedToken&, std::string_view) { stop = true; };
    scheduler.add(std::move(request));
  }
  EXPECT_THROW(while (scheduler.advance()){}, Interrupted);
  EXPECT_EQ(ended, 3);
  stop = false;
  EXPECT_FALSE(scheduler.advance());
}

TEST_F(SchedulerTest, caches_of_several_answers_are_copied_layer_by_layer_while_others_go_on) {
  Session session(model_, {});
  const Asked many{options_of("full"), tokens(400, 3), {}, 4};
  constexpr int kAnswers = 9;
  std::vector<std::vector<Token>> alone;
  for (std::uint32_t i = 0; i < kAnswers; ++i) {
    auto request = request_of(many, [&](const RequestEnd& end) { alone.push_back(end.answers.front().tokens); });
    request.generate.sampling = {.temperature = 1, .seed = i};
    Scheduler scheduler(session, {});
    scheduler.add(std::move(request));
    while (scheduler.advance()) continue;
  }

  // max_itl = 0 allows one quantum between two tokens of the other answer.
  Scheduler scheduler(session, {.max_itl = std::chrono::milliseconds(0)});
  const int layers = model_->info().n_layer;
  std::size_t whole = 0;
  std::size_t held = 0;
  std::size_t most = 0;
  int meanwhile = 0;
  bool is_copying = false;
  auto other = request_of({options_of("full"), tokens(8, 4), {}, 1000}, {});
  other.events.on_token = [&](int, const GeneratedToken&, std::string_view) {
    const auto now = session.memory().held;
    if (is_copying) {
      ++meanwhile;
      most = std::max(most, now - std::min(now, held));
    }
    held = now;
  };
  std::vector<std::vector<Token>> together;
  auto request = request_of(many, [&](const RequestEnd& end) {
    for (const auto& answer : end.answers) together.push_back(answer.tokens);
  });
  request.answers = kAnswers;
  request.generate.sampling = {.temperature = 1, .seed = 0};
  request.events.on_prompt = [&](const Cache& cache, std::span<const float>) {
    whole = cache.stats().bytes_held;
    is_copying = true;
  };
  request.events.on_token = [&](int, const GeneratedToken&, std::string_view) { is_copying = false; };
  const auto other_id = scheduler.add(std::move(other));
  scheduler.advance();
  const auto before = session.memory().held;
  scheduler.add(std::move(request));
  while (together.empty() && scheduler.advance()) continue;

  EXPECT_EQ(together, alone);
  const std::size_t layer = whole / static_cast<std::size_t>(layers);
  const std::size_t block_of_other = whole / 400 * 64;  // size of the blocks by which its lanes grow
  EXPECT_LE(most, layer + block_of_other) << "of " << (kAnswers - 1) * whole << " bytes that are copied";
  EXPECT_GE(meanwhile, (kAnswers - 1) * layers - 1) << "tokens of the other answer";
  EXPECT_LE(session.memory().held, before + 1000 * whole / 400) << "only the other answer is left";
  scheduler.cancel(other_id);
  while (scheduler.advance()) continue;
}

TEST_F(SchedulerTest, stop_tokens_penalties_and_least_lengths) {
  Session session(model_, {});
  Scheduler scheduler(session, {});
  const auto answer = [&](auto change) {
    auto request = request_of({options_of("full"), tokens(20, 2), {}, 8}, {});
    change(request.generate);
    std::vector<Token> out;
    request.events.on_end = [&](const RequestEnd& end) { out = end.answers.front().tokens; };
    scheduler.add(std::move(request));
    while (scheduler.advance()) continue;
    return out;
  };
  const auto plain = answer([](GenerateOptions&) {});
  ASSERT_EQ(plain.size(), 8);
  const auto stop = plain[3];
  const auto first = std::find(plain.begin(), plain.end(), stop);
  EXPECT_EQ(answer([&](GenerateOptions& o) { o.stop_tokens = {stop}; }), std::vector<Token>(plain.begin(), first));
  const auto later = answer([&](GenerateOptions& o) {
    o.stop_tokens = {stop};
    o.min_tokens = 6;
  });
  EXPECT_GE(later.size(), 6);
  EXPECT_EQ(std::count(later.begin(), later.end(), stop), 0);
  const auto biased = answer([&](GenerateOptions& o) { o.sampling.logit_bias = {{7, 1000.0F}}; });
  EXPECT_EQ(biased, std::vector<Token>(8, 7));
  const auto penalised = answer([&](GenerateOptions& o) {
    o.sampling.logit_bias = {{7, 1000.0F}};
    o.sampling.presence_penalty = 3000;
  });
  EXPECT_EQ(std::count(penalised.begin(), penalised.end(), 7), 1);
}

}  // namespace
}  // namespace winnow
