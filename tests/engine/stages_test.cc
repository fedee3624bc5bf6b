// SPDX-License-Identifier: Apache-2.0
// Texts that are compressed in stages. The reference reads each stage by the session's own functions: prefill() for the
// first stage, extend() and compress() for the others.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/as_size.h"
#include "engine/greedy_answer.h"
#include "support/cache_options.h"
#include "support/random_tokens.h"
#include "support/some_calibration.h"
#include "support/temp.h"
#include "support/tiny_gguf.h"
#include "winnow/error.h"
#include "winnow/methods.h"
#include "winnow/scheduler.h"

namespace winnow {
namespace {

using test::Answer;
using test::answer_of;
using test::options_of;

constexpr int kAnswer = 6;

/// Lengths of stages: with a budget of 64, a prompt and two turns that are compressed, and turns that are not.
const std::vector<std::vector<std::size_t>> kLengths = {{150}, {150, 100}, {150, 20, 100, 30}, {10, 5, 90, 1}};

/// Contents of a request.
struct Asked {
  CacheOptions keep;
  std::vector<Token> text;
  std::vector<std::size_t> stages;
  std::vector<Token> question;
  bool is_stored = false;

  Request request() const {
    Request out;
    out.keep = keep;
    out.text().tokens = text;
    out.text().stages = stages;
    out.question = question;
    if (is_stored) out.text().cache_salt = "";
    out.generate.max_tokens = kAnswer;
    out.generate.end = EndOfSequence::ignored;
    out.generate.logprobs = test::kLogprobs;
    return out;
  }
};

class StagesTest : public testing::Test {
 public:
  explicit StagesTest(const test::TinyModel& tiny = usual()) {
    write_tiny_gguf(tiny, folder_ / "tiny.gguf");
    model_ = Model::load(folder_ / "tiny.gguf");
    calibration_ = test::calibrated(folder_ / "model.cal", *model_);
  }

  static test::TinyModel usual() {
    test::TinyModel tiny;
    tiny.n_head = 6;
    tiny.n_head_kv = 2;
    return tiny;
  }

  std::vector<Token> tokens(std::size_t n, unsigned seed) const {
    return test::random_tokens(static_cast<int>(n), model_->info().n_vocab, seed);
  }

  Asked asked(const CacheOptions& keep, const std::vector<std::size_t>& lengths, unsigned seed) const {
    std::vector<std::size_t> stages(lengths.size());
    std::partial_sum(lengths.begin(), lengths.end(), stages.begin());
    return {keep, tokens(stages.back(), seed), stages, tokens(7, seed + 1)};
  }

  static Answer reference(Session& session, const Asked& asked) {
    const std::span<const Token> text(asked.text);
    auto read = session.prefill(text.first(asked.stages.front()), std::span(&asked.keep, 1));
    auto& cache = read.caches.front();
    for (std::size_t i = 1; i < asked.stages.size(); ++i) {
      const auto stage = text.subspan(asked.stages[i - 1], asked.stages[i] - asked.stages[i - 1]);
      const CacheMark begin = cache.mark();
      session.extend(cache, stage);
      session.compress(cache, stage, begin);
    }
    return test::greedy_answer(session, cache, session.extend(cache, asked.question), kAnswer);
  }

  /// Runs requests together. Returns the result of each.
  static std::vector<RequestEnd> run(Scheduler& scheduler, std::span<const Asked> asked) {
    std::vector<RequestEnd> out(asked.size());
    for (std::size_t i = 0; i < asked.size(); ++i) {
      Request request = asked[i].request();
      request.events.on_end = [&out, i](RequestEnd end) { out[i] = std::move(end); };
      scheduler.add(std::move(request));
    }
    while (scheduler.advance()) continue;
    return out;
  }
  static RequestEnd run(Scheduler& scheduler, const Asked& asked) {
    return std::move(run(scheduler, std::span(&asked, 1)).front());
  }

  /// Upper bound of the bytes of a step of 64 rows after `tokens` tokens: an attention state (output, maximum and sum)
  /// for each of 6 query heads and each page of 64 entries, times 1.5.
  static std::size_t step_bytes(std::size_t tokens) {
    return 64 * 6 * (tokens / 64 + 4) * (64 + 2) * sizeof(float) * 3 / 2;
  }

  void expect_as_turns();

  test::TempFolder folder_;
  std::string calibration_;
  std::shared_ptr<const Model> model_;
};

/// Specs of all methods, and of some that read a prompt twice.
std::vector<std::string> specs() {
  std::vector<std::string> out = {"lookahead(snapkv)", "kvzip:rank=model", "kvzip(snapkv)", "kvzap:when=step",
                                  "triattention:buffer=5"};
  for (const auto& method : list_methods()) out.push_back(method.name);
  return out;
}

void StagesTest::expect_as_turns() {
  for (const auto precision : {Precision::f32, Precision::automatic}) {
    Session session(model_, {.threads = 2, .precision = precision, .chunk = 64, .calibration = calibration_});
    for (const auto& spec : specs()) {
      std::vector<Answer> wanted;
      std::vector<Asked> requests;
      for (const auto& lengths : kLengths) {
        requests.push_back(asked(options_of(spec, "64"), lengths, static_cast<unsigned>(wanted.size())));
        wanted.push_back(reference(session, requests.back()));
      }
      Scheduler scheduler(session, {.max_itl = std::chrono::milliseconds(1)});
      const auto ends = run(scheduler, requests);
      for (std::size_t i = 0; i < ends.size(); ++i) EXPECT_EQ(answer_of(ends[i]), wanted[i]) << spec << " " << i;
    }
  }
}

TEST_F(StagesTest, stages_are_read_as_a_prompt_and_turns_after_it) { expect_as_turns(); }

class StagesWithWindows : public StagesTest {
 public:
  StagesWithWindows() : StagesTest(test::tiny_with_windows(24, {true, false, true, false})) {}
};

TEST_F(StagesWithWindows, stages_are_read_as_a_prompt_and_turns_after_it) { expect_as_turns(); }

/// Lengths of a prompt and of turns, few of which are compressed.
std::vector<std::size_t> many_turns(std::size_t turns) {
  std::vector<std::size_t> out = {100};
  while (out.size() < turns) out.push_back(out.size() % 13 == 5 ? 80 : 1 + out.size() * 7 % 9);
  return out;
}

/// The same request with only its first stages.
Asked first_stages(const Asked& all, std::size_t stages) {
  Asked out = all;
  out.stages.resize(stages);
  out.text.resize(out.stages.back());
  return out;
}

TEST_F(StagesTest, many_short_turns_are_read_as_one_after_another) {
  Session session(model_, {.threads = 1, .chunk = 64, .calibration = calibration_});
  for (const auto& method : list_methods()) {
    const auto conversation = asked(options_of(method.name, "64"), many_turns(40), 6);
    const auto wanted = reference(session, conversation);
    for (const bool is_stored : {false, true}) {
      Scheduler scheduler(session, {.texts = {.memory = std::size_t{64} << 20}});
      Asked request = conversation;
      request.is_stored = is_stored;
      EXPECT_EQ(answer_of(run(scheduler, request)), wanted) << method.name << " " << is_stored;
    }
  }
}

TEST_F(StagesTest, a_long_conversation_goes_on_from_its_end_and_branches_off_from_a_power_of_two) {
  Session session(model_, {.threads = 1, .chunk = 64, .calibration = calibration_});
  auto all = asked(options_of("snapkv", "64"), many_turns(41), 6);
  all.is_stored = true;
  Scheduler scheduler(session, {.texts = {.memory = std::size_t{64} << 20}});
  run(scheduler, first_stages(all, 40));
  EXPECT_EQ(scheduler.prefix_use().entries, 7);  // after 1, 2, 4, 8, 16, 32 and 40 stages

  const auto goes_on = run(scheduler, all);
  EXPECT_EQ(as_size(goes_on.cached_tokens), all.stages[39]);
  EXPECT_EQ(answer_of(goes_on), reference(session, all));

  Asked other = all;
  std::reverse(other.text.begin() + static_cast<std::ptrdiff_t>(other.stages[20]), other.text.end());
  const auto branch = run(scheduler, other);
  EXPECT_EQ(as_size(branch.cached_tokens), all.stages[15]);
  EXPECT_EQ(answer_of(branch), reference(session, other));
}

/// A request that shares stages with a text that is being read waits for these stages, and then reads the rest itself.
TEST_F(StagesTest, what_a_longer_conversation_stores_is_waited_for) {
  Session session(model_, {.threads = 1, .chunk = 64, .calibration = calibration_});
  auto all = asked(options_of("snapkv", "64"), many_turns(20), 6);
  all.is_stored = true;
  const std::vector<Asked> requests = {all, first_stages(all, 7), first_stages(all, 8), all};
  Scheduler scheduler(session, {.texts = {.memory = std::size_t{64} << 20}});
  const auto ends = run(scheduler, requests);
  for (std::size_t i = 0; i < ends.size(); ++i) EXPECT_EQ(answer_of(ends[i]), reference(session, requests[i])) << i;
  int read = 0;
  for (std::size_t i = 0; i < ends.size(); ++i)
    read += static_cast<int>(requests[i].text.size()) - ends[i].cached_tokens;
  EXPECT_LE(as_size(read), all.text.size() + all.stages[7] - all.stages[3]);
}

TEST_F(StagesTest, what_was_read_of_a_conversation_is_not_read_again) {
  Session session(model_, {.threads = 1, .chunk = 64, .calibration = calibration_});
  for (const auto& method : list_methods()) {
    Scheduler scheduler(session, {.texts = {.memory = std::size_t{64} << 20}});
    auto whole = asked(options_of(method.name, "64"), kLengths[2], 5);
    whole.is_stored = true;
    for (std::size_t stages = 1; stages <= whole.stages.size(); ++stages) {
      const Asked request = first_stages(whole, stages);
      const auto wanted = reference(session, request);
      const auto end = run(scheduler, request);
      EXPECT_EQ(answer_of(end), wanted) << method.name << " " << stages;
      EXPECT_EQ(as_size(end.cached_tokens), stages == 1 ? 0 : whole.stages[stages - 2]) << method.name;
    }
    // A conversation that branches off.
    Asked other = first_stages(whole, 3);
    std::reverse(other.text.begin() + static_cast<std::ptrdiff_t>(other.stages[1]), other.text.end());
    const auto wanted = reference(session, other);
    const auto end = run(scheduler, other);
    EXPECT_EQ(answer_of(end), wanted) << method.name;
    EXPECT_EQ(as_size(end.cached_tokens), whole.stages[1]) << method.name;
  }
}

/// The kept entries depend on the ends of the stages, not only on the tokens.
TEST_F(StagesTest, equal_texts_with_other_stages_are_read) {
  Session session(model_, {.threads = 1, .chunk = 64, .calibration = calibration_});
  Scheduler scheduler(session, {.texts = {.memory = std::size_t{64} << 20}});
  Asked first = asked(options_of("snapkv", "64"), {150, 100}, 3);
  first.is_stored = true;
  Asked second = first;
  second.stages = {100, 250};
  const auto wanted = reference(session, second);
  run(scheduler, first);
  const auto end = run(scheduler, second);
  EXPECT_EQ(answer_of(end), wanted);
  EXPECT_LT(end.cached_tokens, 100) << "blocks of the first stage may be found, but no compressed stage";
}

TEST_F(StagesTest, requests_that_go_on_from_a_text_that_is_being_read_wait_for_it) {
  Session session(model_, {.threads = 1, .chunk = 64, .calibration = calibration_});
  Scheduler scheduler(session, {.texts = {.memory = std::size_t{64} << 20}});
  std::vector<Asked> requests;
  for (const std::size_t last : {40U, 70U, 90U}) {
    requests.push_back(asked(options_of("snapkv", "64"), {400, last}, 3));
    requests.back().is_stored = true;
  }
  for (auto& request : requests) request.text = tokens(request.stages.back(), 9);
  const auto read = tokens(400, 8);
  for (auto& request : requests) std::copy(read.begin(), read.end(), request.text.begin());
  std::vector<Answer> wanted;
  for (const auto& request : requests) wanted.push_back(reference(session, request));
  const auto ends = run(scheduler, requests);
  int found = 0;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    EXPECT_EQ(answer_of(ends[i]), wanted[i]);
    found += ends[i].cached_tokens;
  }
  EXPECT_EQ(found, 2 * 400);
}

/// A stored text can be dropped while a request waits for it. With chunks of 32 tokens, only compressed texts are
/// stored, in half of the memory.
TEST_F(StagesTest, a_text_that_is_dropped_while_a_request_for_it_waits_is_read_again) {
  Session session(model_, {.threads = 1, .chunk = 32, .calibration = calibration_});
  const auto stored = [&](unsigned seed) {
    auto out = asked(options_of("snapkv", "64"), {150, 100}, seed);
    out.is_stored = true;
    return out;
  };
  const Asked first = stored(3);
  const auto wanted = reference(session, first);
  Scheduler all(session, {.texts = {.memory = std::size_t{64} << 20}});
  run(all, first);
  Scheduler scheduler(session, {.parallel = 1, .texts = {.memory = 2 * all.prefix_use().bytes}});
  run(scheduler, first);
  RequestEnd end;
  Request waits = first.request();
  waits.events.on_end = [&](RequestEnd it) { end = std::move(it); };
  Request other = stored(5).request();
  other.priority = 1;
  scheduler.add(std::move(waits));
  scheduler.add(std::move(other));
  while (scheduler.advance()) continue;
  EXPECT_EQ(answer_of(end), wanted);
  EXPECT_EQ(end.cached_tokens, 0);
}

TEST_F(StagesTest, no_more_memory_is_taken_than_was_promised) {
  Session session(model_, {.threads = 1, .chunk = 64, .calibration = calibration_});
  const std::vector<std::vector<std::size_t>> long_ones = {{1500}, {1500, 1000}, {900, 40, 1500, 300}, {10, 1500}};
  constexpr std::size_t kGraph = 1 << 20;  // work space, whatever the length
  for (const auto& method : list_methods()) {
    for (const auto& lengths : long_ones) {
      Scheduler scheduler(session, {});
      const auto request = asked(options_of(method.name, "300"), lengths, 4);
      const std::size_t promised = scheduler.bytes_of(request.request());
      session.reset_peak();
      const std::size_t before = session.memory().held;
      scheduler.add(request.request());
      std::size_t most = 0;
      while (scheduler.advance()) most = std::max(most, scheduler.states().front().bytes_held);
      EXPECT_LE(most, promised) << method.name << " in " << lengths.size() << " stages";
      EXPECT_LE(session.memory().peak - before, promised + kGraph + step_bytes(request.text.size()))
          << method.name << " in " << lengths.size() << " stages";
    }
  }
}

TEST_F(StagesTest, budgets_that_are_too_small_for_a_stage_are_raised) {
  Session session(model_, {.threads = 1});
  Scheduler scheduler(session, {});
  auto request = asked(options_of("snapkv", "10%"), {12, 9}, 2);
  const auto end = run(scheduler, request);
  EXPECT_EQ(answer_of(end).kept.front().front().size(), 12 + 9 + 7 + kAnswer - 1U);
  request.stages.clear();  // the same text as one prompt is refused
  EXPECT_THROW(scheduler.add(request.request()), UsageError);
}

TEST_F(StagesTest, stages_that_cannot_be_are_refused) {
  Session session(model_, {.threads = 1});
  Scheduler scheduler(session, {});
  const auto refuses = [&](const std::vector<std::size_t>& stages) {
    auto request = asked(options_of("full", ""), {12, 9}, 2);
    request.stages = stages;
    EXPECT_THROW(scheduler.add(request.request()), UsageError);
  };
  refuses({0, 21});
  refuses({12});
  refuses({12, 22});
  refuses({12, 12, 21});
  refuses({15, 12, 21});
  auto scored = asked(options_of("full", ""), {12, 9}, 2).request();
  scored.text().prompt_logprobs = 1;
  EXPECT_THROW(scheduler.add(std::move(scored)), UsageError);
}

}  // namespace
}  // namespace winnow
