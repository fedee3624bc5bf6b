// SPDX-License-Identifier: Apache-2.0
// Memory is promised to answers by portions. Answers that wait for a portion are compared with those of each request
// alone in a scheduler without a limit.
#include "engine/promise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <utility>

#include "base/as_size.h"
#include "support/cache_options.h"
#include "support/random_tokens.h"
#include "support/temp.h"
#include "support/tiny_gguf.h"
#include "winnow/error.h"
#include "winnow/scheduler.h"

namespace winnow {
namespace {

using engine::kPortion;
using test::options_of;
using Phase = RequestState::Phase;

constexpr std::size_t kStep = 1 << 20;  ///< work space of a decode step and packed weights, which are not promised

/// Contents of a request. Its answers are sampled, so that they differ and end at many lengths.
struct Asked {
  CacheOptions keep = options_of("full", "", "f32");
  int text = 40;
  int question = 0;
  int most = 3 * kPortion;
  int answers = 1;
  int ends = 0;  ///< number of tokens that end an answer
  bool has_grammar = false;
  bool comes_after_cache = false;
  std::string key = {};
  int priority = 0;
  unsigned seed = 0;
};

using Answers = std::vector<std::vector<Token>>;

/// The states of a scheduler's requests while it works.
struct Seen {
  std::size_t together = 0;  ///< the most requests that had begun
  std::size_t paused = 0;    ///< the most answers that waited for memory
  std::size_t bytes = 0;     ///< the most bytes that were promised
};

class PromiseTest : public testing::Test {
 protected:
  PromiseTest() {
    test::TinyModel tiny;
    tiny.n_layer = 3;
    tiny.head_dim = 128;
    tiny.ctx_train = 4096;
    write_tiny_gguf(tiny, folder_ / "tiny.gguf");
    model_ = Model::load(folder_ / "tiny.gguf");
    session_.emplace(model_, SessionOptions{1, Precision::f32, 64});
  }

  std::vector<Token> tokens(int n, unsigned seed) const { return test::random_tokens(n, model_->info().n_vocab, seed); }

  Request request_of(const Asked& asked) {
    Request out;
    const auto text = tokens(asked.text, asked.seed);
    if (asked.comes_after_cache) {
      auto read = session_->prefill(text, std::span(&asked.keep, 1));
      out.source = RequestCache{std::move(read.caches.front()), std::move(read.logits)};
    } else {
      out.text().tokens = text;
    }
    out.keep = asked.keep;
    out.question = tokens(asked.question, asked.seed + 1);
    out.generate.max_tokens = asked.most;
    out.generate.end = EndOfSequence::ignored;
    out.generate.sampling = {.temperature = 1, .seed = asked.seed};
    for (int i = 0; i < asked.ends; ++i) out.generate.stop_tokens.push_back(100 + i);
    if (asked.has_grammar) out.generate.grammar = "root ::= [a-z]*\n";
    out.answers = asked.answers;
    out.key = asked.key;
    out.priority = asked.priority;
    return out;
  }

  static Answers answers_of(const RequestEnd& end) {
    if (end.error) std::rethrow_exception(end.error);
    Answers out;
    for (const auto& answer : end.answers) out.push_back(answer.tokens);
    return out;
  }

  std::size_t bytes_of(const Asked& asked) { return Scheduler(*session_, {}).bytes_of(request_of(asked)); }

  Answers alone(const Asked& asked) {
    Scheduler scheduler(*session_, {});
    Answers out;
    auto request = request_of(asked);
    request.events.on_end = [&](const RequestEnd& end) { out = answers_of(end); };
    scheduler.add(std::move(request));
    while (scheduler.advance()) continue;
    return out;
  }

  /// Notes the states, and expects what holds at any time.
  static void look(const Scheduler& scheduler, std::size_t memory, Seen& seen) {
    const auto states = scheduler.states();
    const auto count = [&](Phase phase) { return as_size(std::ranges::count(states, phase, &RequestState::phase)); };
    ASSERT_FALSE(states.empty());
    EXPECT_NE(states.front().phase, Phase::paused) << "the oldest one never waits";
    for (const auto& state : states) EXPECT_LE(state.bytes_held, state.bytes_promised);
    EXPECT_LE(scheduler.promised(), memory);
    seen.bytes = std::max(seen.bytes, scheduler.promised());
    seen.together = std::max(seen.together, states.size() - count(Phase::waiting));
    seen.paused = std::max(seen.paused, count(Phase::paused));
  }

  /// Runs the requests at once, and expects the answers that each has alone.
  Seen expect_as_alone(const std::vector<Asked>& asked, std::size_t memory) {
    Seen seen;
    std::vector<Answers> expected;
    std::vector<Request> requests;
    std::size_t ended = 0;
    for (const auto& one : asked) {
      expected.push_back(alone(one));
      requests.push_back(request_of(one));
      requests.back().events.on_end = [&, i = requests.size() - 1](const RequestEnd& end) {
        ++ended;
        EXPECT_EQ(answers_of(end), expected[i]) << "request " << i;
      };
    }
    Scheduler scheduler(*session_, {.memory = memory});
    session_->reset_peak();
    const auto before = session_->memory().held;
    for (auto& request : requests) scheduler.add(std::move(request));
    while (scheduler.advance()) look(scheduler, memory, seen);
    EXPECT_EQ(ended, asked.size());
    EXPECT_EQ(scheduler.promised(), 0);
    EXPECT_LE(session_->memory().peak, before + memory + kStep);
    return seen;
  }

  test::TempFolder folder_;
  std::shared_ptr<const Model> model_;
  std::optional<Session> session_;
};

TEST_F(PromiseTest, answers_that_end_early_leave_their_memory_to_others) {
  std::vector<Asked> asked;
  for (unsigned i = 0; i < 8; ++i) asked.push_back({.most = 8 * kPortion, .ends = 4, .seed = 10 * i});
  const auto seen = expect_as_alone(asked, 2 * bytes_of(asked.front()));
  EXPECT_GE(seen.together, 6) << "with memory for two of the longest answers";
}

TEST_F(PromiseTest, answers_of_full_length_wait_for_each_other_and_end) {
  std::vector<Asked> asked;
  for (unsigned i = 0; i < 6; ++i) asked.push_back({.most = 3 * kPortion, .seed = 10 * i});
  const auto seen = expect_as_alone(asked, 2 * bytes_of(asked.front()));
  EXPECT_GE(seen.together, 3);
  EXPECT_GE(seen.paused, 1);
}

/// While the short answer is the oldest one, the long ones may not take the memory that the first of them needs later.
TEST_F(PromiseTest, long_answers_after_a_short_one_leave_room_for_the_first_of_them) {
  const Asked short_one{.most = 2 * kPortion, .seed = 1};
  const Asked long_one{.most = 4 * kPortion, .seed = 2};
  const auto memory = bytes_of(long_one) + bytes_of(long_one) / 2;
  const auto seen = expect_as_alone({short_one, long_one, long_one}, memory);
  EXPECT_GE(seen.together, 3);
  EXPECT_GE(seen.paused, 1);
}

TEST_F(PromiseTest, memory_for_one_longest_answer_is_enough) {
  const Asked one{.most = 2 * kPortion, .answers = 2, .seed = 3};
  const auto seen = expect_as_alone({one, one}, bytes_of(one));
  EXPECT_EQ(seen.together, 1);
}

TEST_F(PromiseTest, methods_that_evict_while_decoding_need_no_more_after_their_first_portion) {
  const std::vector<Asked> asked(
      4, {.keep = options_of("h2o", "64", "f32"), .text = 100, .most = 3 * kPortion, .seed = 4});
  const auto seen = expect_as_alone(asked, 4 * bytes_of(asked.front()));
  EXPECT_EQ(seen.together, 4);
  EXPECT_EQ(seen.paused, 0);
}

TEST_F(PromiseTest, a_request_is_promised_its_next_portion_when_its_answer_gets_there) {
  const Asked one{.most = 3 * kPortion + 7, .seed = 5};
  Scheduler scheduler(*session_, {.memory = bytes_of(one)});
  scheduler.add(request_of(one));
  std::map<std::size_t, int> seen;  // tokens when a promise was seen first
  while (scheduler.advance()) {
    const auto state = scheduler.states().front();
    if (state.phase == Phase::answering) seen.emplace(state.bytes_promised, state.generated);
  }
  std::map<std::size_t, int> expected;
  for (int portions = 0; portions < 4; ++portions) {
    auto part = one;
    part.most = std::min(one.most, (portions + 1) * kPortion);
    part.comes_after_cache = true;  // reading is over
    const auto request = request_of(part);
    expected.emplace(Scheduler(*session_, {}).bytes_of(request), std::max(1, portions * kPortion));
  }
  EXPECT_EQ(seen, expected);
}

TEST_F(PromiseTest, a_request_begins_only_when_no_answer_waits) {
  const Asked one{.most = 3 * kPortion, .seed = 6};
  const Asked small{.text = 10, .most = 1, .seed = 7};
  const auto memory = 2 * bytes_of(one);
  Scheduler scheduler(*session_, {.memory = memory});
  std::vector<Scheduler::Id> ids;
  for (int i = 0; i < 4; ++i) ids.push_back(scheduler.add(request_of(one)));
  const auto phases = [&] {
    std::map<Scheduler::Id, Phase> out;
    for (const auto& state : scheduler.states()) out[state.id] = state.phase;
    return out;
  };
  const auto paused = [&] {
    std::set<Scheduler::Id> out;
    for (const auto& [id, phase] : phases()) {
      if (phase == Phase::paused) out.insert(id);
    }
    return out;
  };
  while (paused().empty() && scheduler.advance()) continue;
  const auto waiting = paused();
  ASSERT_FALSE(waiting.empty());
  const auto last = scheduler.add(request_of(small));
  for (int i = 0; i < 3; ++i) scheduler.advance();
  EXPECT_EQ(phases().at(last), Phase::waiting) << "although it would fit";
  for (const auto id : ids) {
    if (!waiting.contains(id)) scheduler.cancel(id);
  }
  scheduler.advance();
  EXPECT_TRUE(paused().empty()) << "others have ended";
  while (scheduler.advance()) continue;
}

Asked random_request(std::mt19937& random) {
  const auto between = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  Asked out;
  const char* const specs[] = {"snapkv", "h2o", "quest", "kvzip", "ems"};
  const std::string spec = between(0, 1) == 0 ? "full" : specs[between(0, 4)];
  out.keep = options_of(spec, spec == "full" ? "" : "64", between(0, 1) == 0 ? "f16" : "f32");
  out.text = between(20, 120);
  out.question = between(0, 2) == 0 ? between(1, 90) : 0;
  out.most = between(0, 3) == 0 ? between(1, 20) : between(kPortion, 3 * kPortion);
  out.answers = between(0, 5) == 0 ? between(2, 3) : 1;
  out.ends = between(0, 1);
  out.has_grammar = between(0, 5) == 0;
  out.comes_after_cache = between(0, 4) == 0;
  out.key = between(0, 1) == 0 ? "one" : "other";
  out.priority = between(0, 2);
  out.seed = static_cast<unsigned>(between(1, 1 << 20));
  return out;
}

TEST_F(PromiseTest, any_requests_in_any_memory_end_with_their_answers) {
  std::size_t paused = 0;
  for (unsigned seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    std::vector<Asked> asked;
    std::size_t most = 0;
    for (int i = 0; i < 7; ++i) {
      asked.push_back(random_request(random));
      most = std::max(most, bytes_of(asked.back()));
    }
    paused += expect_as_alone(asked, most * (100 + random() % 100) / 100).paused;
  }
  EXPECT_GE(paused, 5);
}

TEST_F(PromiseTest, cancelled_requests_make_room_and_leave_nothing) {
  const auto before = session_->memory().held;
  for (unsigned seed = 1; seed <= 5; ++seed) {
    std::mt19937 random(seed);
    const std::vector<Asked> asked(6, {.most = 3 * kPortion, .seed = seed});
    const auto memory = bytes_of(asked.front()) * 3 / 2;
    Scheduler scheduler(*session_, {.memory = memory});
    std::vector<Scheduler::Id> ids;
    std::size_t ended = 0;
    for (const auto& one : asked) {
      auto request = request_of(one);
      request.events.on_end = [&](const RequestEnd& end) { ended += end.error ? 0 : 1; };
      ids.push_back(scheduler.add(std::move(request)));
    }
    Seen seen;
    while (scheduler.advance()) {
      look(scheduler, memory, seen);
      if (random() % 150 == 0) scheduler.cancel(ids[random() % ids.size()]);
    }
    EXPECT_EQ(ended, asked.size());
  }
  EXPECT_LE(session_->memory().held, before + kStep);
}

}  // namespace
}  // namespace winnow
