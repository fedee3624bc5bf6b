// SPDX-License-Identifier: Apache-2.0
// A question over documents in quanta: its memory is as planned, and it can be dropped at any time.
#include "documents/asking.h"

#include <gtest/gtest.h>

#include "fixture.h"
#include "winnow/error.h"

namespace winnow::test {
namespace {

class AskingTest : public MultiTest {
 protected:
  documents::Asking asking(const Documents& documents, const std::string& method, const std::string& budget) {
    AskOptions options{AskSpec::parse(method), {}, KvType::parse("f16")};
    if (!budget.empty()) options.budget = Budget::parse(budget);
    return {documents, question_, options};
  }
};

TEST_F(AskingTest, takes_no_more_memory_than_it_says) {
  const auto some = documents({600, 300, 64, 10});
  for (const std::string method :
       {"samkv", "samkv:sigma=0", "recompute", "reuse", "epic", "cacheblend", "multi-infllm"}) {
    const auto before = session_->memory().held;
    session_->reset_peak();
    auto one = asking(some, method, method == "multi-infllm" ? "200" : "");
    const auto promised = one.bytes(session_->impl());
    one.begin(session_->impl());
    while (one.advance()) EXPECT_LE(one.done(), 1);
    EXPECT_LE(session_->memory().peak - before, promised) << method;
    const auto asked = one.take();
    EXPECT_LE(asked.cache.stats().bytes_held, one.cache_bytes(session_->impl())) << method;
    EXPECT_EQ(asked.cache.stats().tokens_seen, one.tokens());
  }
}

TEST_F(AskingTest, leaves_nothing_when_it_is_dropped) {
  const auto some = documents({300, 200});
  for (const std::string method : {"samkv", "recompute", "cacheblend"}) {
    const auto before = session_->memory().held;
    for (int quanta = 0; quanta < 8; ++quanta) {
      auto one = asking(some, method, "");
      one.begin(session_->impl());
      for (int i = 0; i < quanta && one.advance(); ++i) continue;
    }
    EXPECT_LE(session_->memory().held, before + (1 << 20)) << method;
  }
}

TEST_F(AskingTest, two_at_a_time_are_as_each_alone) {
  const auto some = documents({300, 200});
  const auto first = ask(some, "samkv");
  const auto second = ask(some, "cacheblend");
  AskOptions options{AskSpec::parse("samkv"), {}, KvType::parse("f32")};
  documents::Asking a(some, question_, options);
  options.method = AskSpec::parse("cacheblend");
  documents::Asking b(some, question_, options);
  a.begin(session_->impl());
  b.begin(session_->impl());
  for (bool more = true; more;) {
    const bool a_more = a.advance();
    const bool b_more = b.advance();
    more = a_more && b_more;
    if (!a_more) {
      while (b_more && b.advance()) continue;
    } else if (!b_more) {
      while (a.advance()) continue;
    }
  }
  EXPECT_EQ(a.take().logits, first.logits);
  EXPECT_EQ(b.take().logits, second.logits);
}

}  // namespace
}  // namespace winnow::test
