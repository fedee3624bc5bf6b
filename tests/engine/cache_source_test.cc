// SPDX-License-Identifier: Apache-2.0
// Requests with a cache source. The source of these tests reads a prompt, so the answer must be the prompt's.
#include "engine/cache_source.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "base/as_size.h"
#include "engine/cache_bytes.h"
#include "engine/prompt_reading.h"
#include "support/cache_options.h"
#include "support/random_tokens.h"
#include "support/temp.h"
#include "support/tiny_gguf.h"
#include "winnow/error.h"
#include "winnow/scheduler.h"

namespace winnow {
namespace {

/// Reads a prompt, then waits until the test lets it continue.
class PromptSource : public engine::CacheSource {
 public:
  PromptSource(std::vector<Token> text, const CacheOptions& keep) : text_(std::move(text)), keep_(keep) {}

  int tokens() const override { return static_cast<int>(text_.size()); }
  std::size_t bytes(const Session::Impl& session) const override {
    return engine::ReadingPlan(session, tokens(), keep_).bytes().all();
  }
  std::size_t cache_bytes(const Session::Impl& session) const override {
    return engine::cache_bytes(keep_, session.hparams, tokens());
  }
  void begin(Session::Impl& session) override {
    reading_.emplace(session, engine::ReadingPlan(session, tokens(), keep_), engine::ReadingInput{.text = text_});
  }
  bool advance() override {
    EXPECT_FALSE(is_waiting());
    if (!has_read) return has_read = !reading_->advance(), true;
    if (fails) throw InputError("it cannot be stored");
    return false;
  }
  bool is_waiting() const override { return has_read && waits; }
  double done() const override { return has_read ? 1 : reading_ ? reading_->done() : 0; }
  Cache take_cache() override { return std::move(reading_->take_caches(0).front()); }
  std::vector<float> take_logits() override { return reading_->logits(0); }

  bool waits = false;
  bool fails = false;
  bool has_read = false;

 private:
  std::vector<Token> text_;
  CacheOptions keep_;
  std::optional<engine::PromptReading> reading_;
};

class CacheSourceTest : public testing::Test {
 protected:
  CacheSourceTest() {
    test::TinyModel tiny;
    tiny.ctx_train = 4096;
    test::write_tiny_gguf(tiny, folder_ / "tiny.gguf");
    model_ = Model::load(folder_ / "tiny.gguf");
    session_.emplace(model_, SessionOptions{2, Precision::f32, 32});
  }

  std::vector<Token> tokens(int n, unsigned seed) const { return test::random_tokens(n, model_->info().n_vocab, seed); }

  Request request(int answer) {
    Request out;
    out.keep = keep_;
    out.generate.max_tokens = answer;
    out.generate.end = EndOfSequence::ignored;
    out.events.on_end = [this](RequestEnd end) { ends_.push_back(std::move(end)); };
    return out;
  }
  Request of_text(int answer) {
    Request out = request(answer);
    out.text().tokens = tokens(300, 1);
    return out;
  }
  Request of_source(int answer) {
    source_ = std::make_shared<PromptSource>(tokens(300, 1), keep_);
    Request out = request(answer);
    out.source = source_;
    return out;
  }

  test::TempFolder folder_;
  std::shared_ptr<const Model> model_;
  std::optional<Session> session_;
  CacheOptions keep_ = test::options_of("snapkv", "64");
  std::shared_ptr<PromptSource> source_;
  std::vector<RequestEnd> ends_;
};

TEST_F(CacheSourceTest, answers_are_those_of_the_text) {
  Scheduler scheduler(*session_, {});
  scheduler.add(of_text(9));
  while (scheduler.advance()) continue;
  const auto promised = scheduler.bytes_of(of_text(9));
  EXPECT_EQ(scheduler.bytes_of(of_source(9)), promised);
  scheduler.add(of_source(9));
  scheduler.add(of_source(9));
  while (scheduler.advance()) {
    for (const auto& state : scheduler.states()) {
      EXPECT_LE(state.bytes_promised, promised);
      EXPECT_EQ(state.prompt_tokens, 300);
    }
  }
  ASSERT_EQ(ends_.size(), 3);
  for (const auto& end : ends_) {
    ASSERT_EQ(end.error, nullptr);
    EXPECT_EQ(end.answers.front().tokens, ends_.front().answers.front().tokens);
    EXPECT_EQ(end.caches.front().kept(), ends_.front().caches.front().kept());
  }
}

TEST_F(CacheSourceTest, one_that_waits_keeps_its_promise_and_lets_others_go_on) {
  Scheduler scheduler(*session_, {});
  scheduler.add(of_source(0));
  const auto promised = scheduler.bytes_of(of_source(0));
  auto second = of_source(0);
  source_->waits = true;
  scheduler.add(std::move(second));
  for (int i = 0; i < 3; ++i) scheduler.add(of_text(5));
  while (scheduler.advance()) continue;
  EXPECT_EQ(ends_.size(), 4);
  EXPECT_EQ(scheduler.states().size(), 1);
  EXPECT_EQ(scheduler.promised(), promised);
  EXPECT_FALSE(scheduler.advance());
  source_->waits = false;
  while (scheduler.advance()) continue;
  ASSERT_EQ(ends_.size(), 5);
  EXPECT_EQ(ends_.back().caches.front().kept(), ends_.front().caches.front().kept());
  EXPECT_EQ(scheduler.promised(), 0);
}

TEST_F(CacheSourceTest, what_waits_for_memory_begins_when_a_waiting_one_has_ended) {
  const auto promise = Scheduler(*session_, {}).bytes_of(of_text(5));
  Scheduler scheduler(*session_, {.memory = promise});
  auto first = of_source(0);
  source_->waits = true;
  const auto id = scheduler.add(std::move(first));
  scheduler.add(of_text(5));
  while (scheduler.advance()) continue;
  EXPECT_TRUE(ends_.empty()) << "there is no room";
  scheduler.cancel(id);
  EXPECT_TRUE(scheduler.advance());
  while (scheduler.advance()) continue;
  ASSERT_EQ(ends_.size(), 2);
  EXPECT_EQ(ends_.back().answers.front().tokens.size(), 5);
}

TEST_F(CacheSourceTest, answers_that_need_the_memory_of_a_waiting_one_wait_with_it) {
  constexpr int kLong = 2000;
  const auto alone = Scheduler(*session_, {}).bytes_of(of_text(kLong));
  auto first = of_source(kLong);
  Scheduler scheduler(*session_, {.memory = alone + alone / 2});
  source_->waits = true;
  scheduler.add(std::move(first));
  scheduler.add(of_text(kLong));
  while (scheduler.advance()) continue;
  ASSERT_EQ(scheduler.states().size(), 2);
  EXPECT_EQ(scheduler.states().back().phase, RequestState::Phase::paused);
  EXPECT_FALSE(scheduler.advance()) << "nothing can go on";
  source_->waits = false;
  EXPECT_TRUE(scheduler.advance());
  while (scheduler.advance()) continue;
  ASSERT_EQ(ends_.size(), 2);
  EXPECT_EQ(ends_.front().answers.front().tokens.size(), as_size(kLong));
  EXPECT_EQ(ends_.front().answers.front().tokens, ends_.back().answers.front().tokens);
}

TEST_F(CacheSourceTest, an_error_and_a_cancellation_leave_nothing) {
  const auto before = session_->memory().held;
  Scheduler scheduler(*session_, {});
  auto request = of_source(3);
  source_->fails = true;
  scheduler.add(std::move(request));
  for (int steps = 0; steps < 30; steps += 3) {
    const auto id = scheduler.add(of_source(3));
    for (int i = 0; i < steps; ++i) scheduler.advance();
    scheduler.cancel(id);
  }
  while (scheduler.advance()) continue;
  ASSERT_EQ(ends_.size(), 11);
  EXPECT_EQ(std::ranges::count_if(ends_, [](const RequestEnd& end) { return end.error != nullptr; }), 1);
  ends_.clear();
  source_.reset();
  EXPECT_LE(session_->memory().held, before + (1 << 20));
}

}  // namespace
}  // namespace winnow
