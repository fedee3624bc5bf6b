// SPDX-License-Identifier: Apache-2.0
// Texts that grow: no token is read twice, and answers equal, bit for bit, those of reading everything.
#include "engine/known_text.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/as_size.h"
#include "engine/greedy_answer.h"
#include "engine/prompt_reading.h"
#include "engine/stored_text.h"
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
    return stored_text_request(keep, std::move(text), std::move(salt), kAnswer);
  }

  static RequestEnd run(Scheduler& scheduler, Request request) { return end_of(scheduler, std::move(request)); }

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
    return {first(230), first(320), first(500), first(500), branch};
  }

  TempFolder folder_;
  std::string calibration_;
  std::shared_ptr<const Model> model_;
};

std::vector<std::string> every_spec() {
  std::vector<std::string> out = {"kvzip:after=chunk,chunk=100",
                                  "kvzip(snapkv):after=chunk,chunk=64,even=0.01,demand=0,sharp=0",
                                  "lookahead(snapkv)",
                                  "kvzip:rank=model",
                                  "kvzip(snapkv)",
                                  "ada(snapkv)",
                                  "refit(snapkv)",
                                  "span(snapkv)",
                                  "quest(snapkv)",
                                  "critical(snapkv)",
                                  "lookahead(h2o)",
                                  "ada(h2o):over=model",
                                  "h2o:when=prefill",
                                  "refit(h2o)",
                                  "kvzip(h2o:when=prefill):after=chunk,chunk=128,even=0.01,demand=0,sharp=0"};
  for (const auto& method : list_methods()) out.push_back(method.name);
  return out;
}

struct Team {
  int threads;
  int chunk;
};

TEST_F(KnownTexts, have_the_answers_of_reading_everything_with_every_method) {
  for (const auto precision : {Precision::f32, Precision::automatic}) {
    for (const auto& [threads, chunk] : {Team{1, 256}, Team{2, 64}}) {
      auto with = options(precision);
      with.threads = threads;
      with.chunk = chunk;
      Session session(model_, with);
      for (const auto& spec : every_spec()) {
        const auto keep = options_of(spec, "64");
        Scheduler scheduler(session, {.texts = {.memory = kMemory}});
        int known = 0;
        for (const auto& text : turns()) {
          const auto wanted = anew(session, keep, text);
          const auto end = run(scheduler, request(keep, text));
          EXPECT_EQ(answer_of(end), wanted) << spec << ", " << text.size() << " tokens, " << threads << " threads";
          known += end.cached_tokens;
        }
        EXPECT_GT(known, 0) << spec;
      }
    }
  }
}

/// Each turn has an empty memory, so all that it knows of earlier ones is in the folder.
TEST_F(KnownTexts, are_known_from_a_folder_as_from_memory_with_every_method) {
  Session session(model_, options());
  for (const auto& spec : every_spec()) {
    const auto keep = options_of(spec, "64");
    const TempFolder texts;
    Scheduler remembers(session, {.texts = {.memory = kMemory}});
    for (const auto& text : turns()) {
      const auto wanted = run(remembers, request(keep, text));
      Scheduler forgets(session, {.texts = {.memory = kMemory, .place = texts / "texts"}});
      const auto end = run(forgets, request(keep, text));
      EXPECT_EQ(answer_of(end), answer_of(wanted)) << spec << ", " << text.size() << " tokens";
      EXPECT_EQ(end.cached_tokens, wanted.cached_tokens) << spec << ", " << text.size() << " tokens";
      EXPECT_EQ(forgets.text_use().damaged, 0U) << spec;
    }
  }
}

/// Methods that look at all queries or rows, and find the sums over earlier ones.
const std::vector<std::string> kWithStates = {
    "h2o",
    "ems",
    "cam",
    "expected-attention",
    "kvzap",
    "infllm",
    "compactor",
    "lookahead(h2o)",
    "ada(h2o):over=model",
    "kvzip:after=chunk,chunk=64",
    "ada(kvzip(snapkv):after=chunk,chunk=128,even=0.01,demand=0,sharp=0):over=model"};

TEST_F(KnownTexts, pass_only_new_rows_where_methods_look_at_all_queries) {
  Session session(model_, options());
  const auto texts = turns();
  const std::vector<int> same = {0, 230, 320, 500, 200};  // tokens at the beginning that an earlier text has, too
  for (const auto& spec : kWithStates) {
    Scheduler scheduler(session, {.texts = {.memory = kMemory}});
    for (std::size_t i = 0; i < texts.size(); ++i) {
      // At least a block passes. An earlier text has left its state a block before its last one, at worst.
      const int known = run(scheduler, request(options_of(spec, "64"), texts[i])).cached_tokens;
      EXPECT_LE(known, same[i]) << spec << ", text " << i;
      EXPECT_GT(known, same[i] - 2 * engine::TextBlock::kTokens) << spec << ", text " << i;
    }
  }
}

engine::PassLimits limits_of(const engine::ReadingPlan& plan, const Session::Impl& session) {
  return {plan.first_seen(session), [&](int rows) { return plan.states(session, rows); }};
}

/// Chunks that pass through a layer, and tokens of drafts.
int quanta(engine::PromptReading&& reading) {
  int out = 1;
  while (reading.advance()) ++out;
  return out;
}

TEST_F(KnownTexts, are_taken_by_a_second_pass_as_soon_as_the_first_has_read_them) {
  Session session(model_, options());
  auto& impl = session.impl();
  const auto text = tokens(500, 3);
  for (const char* spec : {"lookahead(snapkv)", "kvzip:rank=model", "ada(h2o):over=model", "lookahead(h2o)"}) {
    const engine::ReadingPlan plan(impl, 500, options_of(spec, "64"));
    ASSERT_TRUE(plan.has_second()) << spec;
    const int anew = quanta({impl, plan, {.text = text}});
    engine::TextStore store(kMemory);
    constexpr int kMost = 384;
    engine::KnownText known(impl, {store}, {"", kMost, plan.first().scratch_type()}, text, 0, limits_of(plan, impl));
    const int once = quanta({impl, plan, {.text = text, .known = &known}});
    EXPECT_EQ(once, anew - kMost / impl.options.chunk * impl.hparams.n_layer) << spec;
  }
}

TEST_F(KnownTexts, repeat_only_chunks_that_no_state_has) {
  Session session(model_, options());
  auto& impl = session.impl();
  const auto text = tokens(500, 3);
  const auto known_by = [&](const char* spec) {
    engine::TextStore store(kMemory);
    const engine::ReadingPlan plan(impl, 500, options_of(spec, "64"));
    constexpr int kMost = 384;
    const engine::StoredPart part{"", kMost, plan.first().scratch_type()};
    const auto take = [&] {
      return std::make_unique<engine::KnownText>(impl, engine::TextTiers{store}, part, text, 0, limits_of(plan, impl));
    };
    const int anew = quanta({impl, plan, {.text = text, .known = take().get()}});
    const auto known = take();
    const std::vector<CacheOptions> caches = {options_of(spec, "64")};
    engine::ReadingSizes sizes{.text = 500};
    sizes.known = known->tokens();
    const engine::ReadingPlan rest(impl, sizes, caches);
    return (anew - quanta({impl, rest, {.text = text, .known = known.get()}})) / impl.hparams.n_layer;
  };
  const int text_alone = 384 / impl.options.chunk;
  EXPECT_EQ(known_by("kvzip:chunk=128"), text_alone);
  EXPECT_GE(known_by("kvzip:after=chunk,chunk=128"), text_alone + 3);
}

/// States that grow are there wherever texts branch off. Otherwise the second text is read anew, and others find the
/// state that it leaves.
TEST_F(KnownTexts, leave_states_where_they_branch_off) {
  Session session(model_, options());
  const auto common = tokens(320, 3);
  for (const auto& spec : kWithStates) {
    const auto keep = options_of(spec, "64");
    const bool grows = std::string_view(spec).find("kvz") != std::string_view::npos;
    for (const auto& texts : {std::string(), folder_ / "branches"}) {
      std::unique_ptr<Scheduler> scheduler;
      for (unsigned i = 0; i < 4; ++i) {
        // With a folder, each text has an empty memory.
        if (i == 0 || !texts.empty())
          scheduler =
              std::make_unique<Scheduler>(session, SchedulerOptions{.texts = {.memory = kMemory, .place = texts}});
        auto text = common;
        const auto own = tokens(200 + static_cast<int>(i) * 30, 10 + i);
        text.insert(text.end(), own.begin(), own.end());
        const auto end = run(*scheduler, request(keep, text, spec));
        EXPECT_EQ(answer_of(end), anew(session, keep, text)) << spec << ", text " << i;
        EXPECT_EQ(end.cached_tokens, i < (grows ? 1 : 2) ? 0 : 320) << spec << ", text " << i;
      }
    }
  }
}

/// A block of 32 numbers has 34 bytes as q8_0, and 64 as f16 or bf16.
TEST_F(KnownTexts, have_about_half_of_the_bytes_as_q8_0) {
  Session session(model_, options());
  const auto keep = options_of("snapkv", "64");
  const auto text = tokens(420, 3);
  const auto texts = folder_ / "types";
  const auto bytes_of = [&](TextType type) {
    Scheduler scheduler(session, {.texts = {.memory = kMemory, .place = texts, .type = type}});
    const auto first = run(scheduler, request(keep, text));
    EXPECT_EQ(first.cached_tokens, 0) << "each type has its own values in the folder";
    EXPECT_EQ(answer_of(first), anew(session, keep, text));
    const auto second = run(scheduler, request(keep, text));
    EXPECT_GT(second.cached_tokens, 250);
    EXPECT_EQ(answer_of(run(scheduler, request(keep, text))), answer_of(second));
    return static_cast<double>(scheduler.text_use().memory_bytes);
  };
  const double exact = bytes_of(TextType::exact);
  EXPECT_NEAR(bytes_of(TextType::q8_0) / exact, 34.0 / 64, 0.03);
}

TEST_F(KnownTexts, are_read_from_the_last_state_that_all_observers_have) {
  Session session(model_, options());
  Scheduler scheduler(session, {.texts = {.memory = kMemory}});
  const auto texts = turns();
  const auto h2o = options_of("h2o", "64");
  const auto expected = options_of("expected-attention", "64");
  run(scheduler, request(h2o, texts[0]));
  run(scheduler, request(expected, texts[1]));
  const int known = run(scheduler, request(h2o, texts[2])).cached_tokens;
  EXPECT_LE(known, 230);
  EXPECT_GT(known, 230 - 2 * engine::TextBlock::kTokens);
}

TEST_F(KnownTexts, have_states_where_another_observer_must_see_the_rows_that_follow) {
  Session session(model_, options());
  Scheduler scheduler(session, {.texts = {.memory = kMemory}});
  const auto text = turns()[2];
  const auto keep = options_of("ems:window=150", "200");  // observes all rows, and the last 150
  run(scheduler, request(keep, text));
  const int known = run(scheduler, request(keep, text)).cached_tokens;
  EXPECT_EQ(known, (500 - 150) / engine::TextBlock::kTokens * engine::TextBlock::kTokens);
}

TEST_F(KnownTexts, with_states_take_no_more_than_their_memory) {
  Session session(model_, options());
  for (const auto& spec : kWithStates) {
    const auto keep = options_of(spec, "64");
    for (const std::size_t memory : {std::size_t{200} << 10, std::size_t{500} << 10}) {
      Scheduler scheduler(session, {.texts = {.memory = memory}});
      for (unsigned i = 0; i < 8; ++i) {
        auto text = tokens(500, i % 3);
        text.resize(300 + i % 4 * 60);
        EXPECT_EQ(answer_of(run(scheduler, request(keep, text))), anew(session, keep, text)) << memory << " " << i;
        EXPECT_LE(scheduler.prefix_use().bytes, memory);
      }
    }
  }
}

TEST_F(KnownTexts, drop_states_that_longer_texts_have_followed_before_blocks) {
  Session session(model_, options());
  auto& impl = session.impl();
  const auto text = tokens(3 * engine::TextBlock::kTokens, 1);
  const auto first = [&](int blocks) { return std::span(text).first(as_size(blocks * engine::TextBlock::kTokens)); };
  const std::vector<std::string> names = {"sums"};
  const std::vector<std::size_t> sizes(as_size(impl.hparams.n_kv_layer), 1024);
  const std::size_t state = engine::LayerBytes::bytes(sizes);
  const std::size_t blocks = 3 * engine::TextBlock::bytes(impl.hparams, ElementType::f16);

  engine::TextStore store(blocks + 3 * state);
  std::vector<engine::TextBlockPtr> chain;
  for (int i = 0; i < 3; ++i)
    chain.push_back(std::make_shared<engine::TextBlock>(impl.account, impl.hparams, ElementType::f16,
                                                        first(i + 1).last(engine::TextBlock::kTokens)));
  store.put("", chain);
  chain.clear();
  for (const int after : {1, 3})
    store.put_fact("", first(after), names[0], std::make_shared<engine::LayerBytes>(impl.account, sizes, "sums"));
  EXPECT_EQ(store.held(), blocks + 2 * state);
  EXPECT_EQ(store.find_facts("", text, 2, {.after = names}).blocks, 1U);
  EXPECT_EQ(store.find_facts("", text, 3, {.after = names}).blocks, 3U);

  store.put_fact("", first(2), names[0], std::make_shared<engine::LayerBytes>(impl.account, sizes, "sums"));
  ASSERT_TRUE(store.reserve(state));
  EXPECT_EQ(store.find_facts("", text, 3, {.after = names}).blocks, 3U);
  EXPECT_EQ(store.find_facts("", text, 2, {.after = names}).blocks, 2U);
  EXPECT_EQ(store.find_facts("", text, 1, {.after = names}).blocks, 0U) << "the state that another one has followed";
  EXPECT_EQ(store.find("", text).size(), 3U);
  EXPECT_EQ(store.held(), blocks + 2 * state);
}

TEST_F(KnownTexts, are_taken_as_far_as_every_block_has_its_piece_of_a_state) {
  Session session(model_, options());
  auto& impl = session.impl();
  const auto text = tokens(4 * engine::TextBlock::kTokens, 1);
  const std::vector<std::size_t> sizes(as_size(impl.hparams.n_kv_layer), 1024);
  const auto fact = [&] { return std::make_shared<engine::LayerBytes>(impl.account, sizes, "a fact"); };
  engine::TextStore store(kMemory);
  std::vector<engine::TextBlockPtr> chain;
  for (int i = 0; i < 4; ++i)
    chain.push_back(std::make_shared<engine::TextBlock>(
        impl.account, impl.hparams, ElementType::f16,
        std::span(text).subspan(as_size(i) * engine::kBlockTokens, engine::kBlockTokens)));
  store.put("", chain);
  const auto pieces_of = [&](const engine::FactNames& names) {
    const auto found = store.find_facts("", text, 4, names);
    return found.along.empty() ? 0 : found.along.front().size();
  };
  const std::vector<std::string> scores = {"scores"};
  EXPECT_EQ(pieces_of({.along = scores}), 0U);
  const std::vector<engine::LayerBytesPtr> two = {fact(), fact()};
  store.put_pieces("", text, 0, "scores", two);
  EXPECT_EQ(pieces_of({.along = scores}), 2U);
  store.put_pieces("", text, 3, "scores", std::span(two).first(1));
  EXPECT_EQ(pieces_of({.along = scores}), 2U) << "the third is missing";
  store.put_pieces("", text, 1, "scores", two);
  EXPECT_EQ(pieces_of({.along = scores}), 4U);
  EXPECT_EQ(store.find_facts("", text, 4, {.along = scores}).along.front()[1], two[1]) << "the first one stays";
  store.put_fact("", std::span(text).first(3 * engine::kBlockTokens), "sums", fact());
  EXPECT_EQ(pieces_of({.after = {"sums"}, .along = scores}), 3U);
  const auto held = store.held();
  store.put_pieces("", text, 0, "scores", two);
  EXPECT_EQ(store.held(), held);
}

TEST_F(KnownTexts, give_the_memory_of_states_back) {
  Session session(model_, options());
  const auto keep = options_of("h2o", "64");
  run(*std::make_unique<Scheduler>(session, SchedulerOptions{}), request(keep, tokens(300, 1)));
  const auto before = session.memory().held;
  {
    Scheduler scheduler(session, {.texts = {.memory = kMemory}});
    for (unsigned i = 0; i < 5; ++i) run(scheduler, request(keep, tokens(300, i)));
    EXPECT_GE(session.memory().held, before + scheduler.prefix_use().bytes / 2);
  }
  EXPECT_EQ(session.memory().held, before);
}

TEST_F(KnownTexts, are_the_same_for_all_methods) {
  Session session(model_, options());
  Scheduler scheduler(session, {.texts = {.memory = kMemory}});
  const auto text = tokens(400, 5);
  for (const char* spec : {"h2o", "snapkv", "kvzip", "full"}) {
    const auto keep = options_of(spec, "64");
    const auto end = run(scheduler, request(keep, text));
    EXPECT_EQ(answer_of(end), anew(session, keep, text)) << spec;
    // No method before has added up what h2o needs.
    EXPECT_EQ(end.cached_tokens > 300, std::string(spec) != "h2o") << spec;
  }
}

TEST_F(KnownTexts, of_another_salt_are_read_anew) {
  Session session(model_, options());
  Scheduler scheduler(session, {.texts = {.memory = kMemory}});
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
    Scheduler scheduler(session, {.texts = {.memory = memory}});
    for (unsigned i = 0; i < 12; ++i) {
      const auto text = tokens(300 + static_cast<int>(i % 3) * 100, i % 5);
      EXPECT_EQ(answer_of(run(scheduler, request(keep, text))), anew(session, keep, text)) << memory << " " << i;
      EXPECT_LE(scheduler.prefix_use().bytes, memory);
    }
  }
}

TEST_F(KnownTexts, share_their_memory_with_compressed_texts) {
  Session session(model_, options());
  const auto keep = options_of("snapkv", "64");
  constexpr std::size_t kLittle = std::size_t{400} << 10;
  Scheduler scheduler(session, {.texts = {.memory = kLittle}});
  for (unsigned i = 0; i < 12; ++i) {
    auto asked = request(keep, tokens(300, i % 6));
    asked.question = tokens(5, 9);
    run(scheduler, std::move(asked));
    EXPECT_GT(scheduler.prefix_use().entries, 0) << i;
    EXPECT_LE(scheduler.prefix_use().bytes, kLittle) << i;
  }
  EXPECT_GT(scheduler.prefix_use().dropped, 0U);
}

/// Later texts are shorter than the one that is being read, and would be read before it.
TEST_F(KnownTexts, are_read_once_for_requests_that_come_at_once) {
  Session session(model_, options());
  const auto keep = options_of("snapkv:window=16", "64");
  Scheduler scheduler(session, {.texts = {.memory = kMemory}});
  std::vector<std::vector<Token>> texts;
  std::vector<RequestEnd> ends(16);
  for (unsigned i = 0; i < ends.size(); ++i) {
    auto& text = texts.emplace_back(tokens(512, 5));
    const auto own = tokens(i == 0 ? 300 : 20, 10 + i);
    text.insert(text.end(), own.begin(), own.end());
    auto asked = request(keep, text);
    asked.events.on_end = [&ends, i](RequestEnd end) { ends[i] = std::move(end); };
    scheduler.add(std::move(asked));
    if (i == 0) scheduler.advance();
  }
  while (scheduler.advance()) continue;
  int read_whole = 0;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    EXPECT_EQ(answer_of(ends[i]), anew(session, keep, texts[i])) << i;
    read_whole += ends[i].cached_tokens < 384 ? 1 : 0;
  }
  EXPECT_EQ(read_whole, 1);
}

TEST_F(KnownTexts, are_not_waited_for_if_that_takes_longer) {
  Session session(model_, options());
  const auto keep = options_of("snapkv:window=16", "64");
  Scheduler scheduler(session, {.texts = {.memory = kMemory}});
  const auto text = tokens(3000, 5);
  std::string order;
  for (const auto& [tokens, name] : {std::pair(3000, 'l'), std::pair(300, 's')}) {
    auto asked = request(keep, {text.begin(), text.begin() + tokens});
    asked.events.on_text = [&order, name = name](const Cache&, std::span<const float>) { order += name; };
    scheduler.add(std::move(asked));
    scheduler.advance();
  }
  while (scheduler.advance()) continue;
  EXPECT_EQ(order, "sl");
}

class KnownTextsWithWindows : public KnownTexts {
 public:
  KnownTextsWithWindows() : KnownTexts(tiny_with_windows(24, {true, false, true, false})) {}
};

TEST_F(KnownTextsWithWindows, have_the_answers_of_reading_everything) {
  Session session(model_, options());
  const auto keep = options_of("snapkv", "64");
  Scheduler scheduler(session, {.texts = {.memory = kMemory}});
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
  Scheduler scheduler(session, {.texts = {.memory = kMemory}});
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
