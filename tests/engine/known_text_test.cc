// SPDX-License-Identifier: Apache-2.0
// Texts that grow: no token is read twice, and answers equal, bit for bit, those of reading everything.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/as_size.h"
#include "engine/greedy_answer.h"
#include "engine/text_store.h"
#include "support/cache_options.h"
#include "support/random_tokens.h"
#include "support/some_calibration.h"
#include "support/temp.h"
#include "support/tiny_architectures.h"
#include "support/tiny_gguf.h"
#include "winnow/methods.h"
#include "winnow/scheduler.h"

namespace winnow::test {
namespace {

constexpr std::size_t kMemory = std::size_t{64} << 20;
constexpr int kAnswer = 5;

/// Compares a scheduler with a text store with one that reads each text anew.
class KnownTexts : public testing::Test {
 public:
  explicit KnownTexts(const TinyModel& tiny = usual()) {
    write_tiny_gguf(tiny, folder_ / "tiny.gguf");
    model_ = Model::load(folder_ / "tiny.gguf");
  }
  void SetUp() override { calibration_ = calibrated(folder_ / "model.cal", *model_); }

  static TinyModel usual() {
    TinyModel tiny;
    tiny.n_head = 6;
    tiny.n_head_kv = 2;
    return tiny;
  }

  std::vector<Token> tokens(int n, unsigned seed) const { return random_tokens(n, model_->info().n_vocab, seed); }

  SessionOptions options(Precision precision = Precision::automatic) const {
    return {.threads = 2, .precision = precision, .chunk = 64, .calibration = calibration_};
  }

  static Request request(const CacheOptions& keep, std::vector<Token> text, std::string salt = "") {
    Request out;
    out.keep = keep;
    out.source = RequestText{.tokens = std::move(text), .cache_salt = std::move(salt)};
    out.generate.max_tokens = kAnswer;
    out.generate.end = EndOfSequence::ignored;
    out.generate.logprobs = kLogprobs;
    return out;
  }

  static RequestEnd run(Scheduler& scheduler, Request request) {
    RequestEnd out;
    request.events.on_end = [&](RequestEnd end) { out = std::move(end); };
    scheduler.add(std::move(request));
    while (scheduler.advance()) continue;
    return out;
  }

  static Answer anew(Session& session, const CacheOptions& keep, const std::vector<Token>& text) {
    Scheduler scheduler(session, {});
    return answer_of(run(scheduler, request(keep, text)));
  }

  /// A text, a longer one that begins with it, an even longer one twice, and one that branches off.
  std::vector<std::vector<Token>> turns() const {
    const auto all = tokens(500, 3);
    auto branch = all;
    std::reverse(branch.begin() + 200, branch.end());
    const auto first = [&](int n) { return std::vector<Token>(all.begin(), all.begin() + n); };
    return {first(230), first(391), first(500), first(500), branch};
  }

  TempFolder folder_;
  std::string calibration_;
  std::shared_ptr<const Model> model_;
};

std::vector<std::string> every_spec() {
  std::vector<std::string> out = {"kvzip:after=chunk,chunk=100",
                                  "kvzip(snapkv):after=chunk,chunk=64,even=0.01",
                                  "lookahead(snapkv)",
                                  "kvzip:rank=model",
                                  "kvzip(snapkv)",
                                  "ada(snapkv)",
                                  "refit(snapkv)",
                                  "span(snapkv)",
                                  "quest(snapkv)",
                                  "critical(snapkv)"};
  for (const auto& method : list_methods()) out.push_back(method.name);
  return out;
}

/// Methods that look at all queries of a prompt, or at all rows from which keys are computed.
const std::set<std::string> kReadAnew = {"h2o", "ems", "cam", "expected-attention", "compactor", "kvzap", "infllm"};

TEST_F(KnownTexts, have_the_answers_of_reading_everything_with_every_method) {
  for (const auto precision : {Precision::f32, Precision::automatic}) {
    Session session(model_, options(precision));
    for (const auto& spec : every_spec()) {
      const auto keep = options_of(spec, "64");
      Scheduler scheduler(session, {.text_memory = kMemory});
      int known = 0;
      for (const auto& text : turns()) {
        const auto wanted = anew(session, keep, text);
        const auto end = run(scheduler, request(keep, text));
        EXPECT_EQ(answer_of(end), wanted) << spec << ", " << text.size() << " tokens";
        known += end.cached_tokens;
      }
      EXPECT_EQ(known == 0, kReadAnew.contains(spec)) << spec << ": " << known;
    }
  }
}

TEST_F(KnownTexts, are_the_same_for_all_methods) {
  Session session(model_, options());
  Scheduler scheduler(session, {.text_memory = kMemory});
  const auto text = tokens(400, 5);
  for (const char* spec : {"h2o", "snapkv", "kvzip", "full"}) {
    const auto keep = options_of(spec, "64");
    const auto end = run(scheduler, request(keep, text));
    EXPECT_EQ(answer_of(end), anew(session, keep, text)) << spec;
    EXPECT_EQ(end.cached_tokens > 300, std::string(spec) != "h2o") << spec;
  }
}

TEST_F(KnownTexts, of_another_salt_are_read_anew) {
  Session session(model_, options());
  Scheduler scheduler(session, {.text_memory = kMemory});
  const auto keep = options_of("snapkv", "64");
  const auto text = tokens(400, 5);
  run(scheduler, request(keep, text, "one"));
  EXPECT_EQ(run(scheduler, request(keep, text, "other")).cached_tokens, 0);
  EXPECT_GT(run(scheduler, request(keep, text, "one")).cached_tokens, 0);
  auto unsalted = request(keep, text);
  unsalted.text().cache_salt.reset();
  EXPECT_EQ(run(scheduler, std::move(unsalted)).cached_tokens, 0);
}

TEST_F(KnownTexts, take_no_more_than_their_memory) {
  Session session(model_, options());
  const auto keep = options_of("snapkv", "64");
  for (const std::size_t memory : {std::size_t{0}, std::size_t{100} << 10, std::size_t{400} << 10}) {
    Scheduler scheduler(session, {.text_memory = memory});
    for (unsigned i = 0; i < 12; ++i) {
      const auto text = tokens(300 + static_cast<int>(i % 3) * 100, i % 5);
      EXPECT_EQ(answer_of(run(scheduler, request(keep, text))), anew(session, keep, text)) << memory << " " << i;
      EXPECT_LE(scheduler.prefix_use().bytes, memory);
    }
  }
}

class KnownTextsWithWindows : public KnownTexts {
 public:
  KnownTextsWithWindows() : KnownTexts(tiny_with_windows(24, {true, false, true, false})) {}
};

TEST_F(KnownTextsWithWindows, have_the_answers_of_reading_everything) {
  Session session(model_, options());
  const auto keep = options_of("snapkv", "64");
  Scheduler scheduler(session, {.text_memory = kMemory});
  int known = 0;
  for (const auto& text : turns()) {
    const auto end = run(scheduler, request(keep, text));
    EXPECT_EQ(answer_of(end), anew(session, keep, text)) << text.size() << " tokens";
    known += end.cached_tokens;
  }
  EXPECT_GT(known, 900);
}

std::vector<std::string> names_of_architectures() {
  std::vector<std::string> out;
  for (const auto& row : tiny_architectures()) out.emplace_back(row.name);
  return out;
}

class KnownTextsOf : public testing::TestWithParam<std::string> {};

TEST_P(KnownTextsOf, have_the_answers_of_reading_everything) {
  struct Fixture : KnownTexts {
    using KnownTexts::KnownTexts;
    void TestBody() override {}
  };
  const Fixture fixture(tiny_of(GetParam()));
  Session session(fixture.model_, {.threads = 2, .chunk = 64});
  Scheduler scheduler(session, {.text_memory = kMemory});
  for (const char* spec : {"streaming-llm", "kvzip:after=chunk,chunk=128"}) {
    const auto keep = options_of(spec, "64");
    for (const auto& text : fixture.turns()) {
      const auto end = KnownTexts::run(scheduler, KnownTexts::request(keep, text));
      EXPECT_EQ(answer_of(end), KnownTexts::anew(session, keep, text)) << spec << ", " << text.size() << " tokens";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(all, KnownTextsOf, testing::ValuesIn(names_of_architectures()), [](const auto& one) {
  std::string name = one.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace winnow::test
