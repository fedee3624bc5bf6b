// SPDX-License-Identifier: Apache-2.0
// Sessions that store texts: prompts read only what is new, with the results of a session that stores nothing.
#include <gtest/gtest.h>

#include <atomic>

#include "engine/greedy_answer.h"
#include "engine/text_store.h"
#include "support/cache_options.h"
#include "support/random_tokens.h"
#include "support/some_calibration.h"
#include "support/temp.h"
#include "support/tiny_gguf.h"
#include "winnow/chat.h"
#include "winnow/error.h"
#include "winnow/methods.h"

namespace winnow::test {
namespace {

constexpr std::size_t kMemory = std::size_t{64} << 20;
constexpr int kBlock = engine::TextBlock::kTokens;

class SessionTexts : public testing::Test {
 protected:
  SessionTexts() {
    TinyModel tiny;
    tiny.n_head = 6;
    tiny.n_head_kv = 2;
    tiny.chat_template = "chatml";
    write_tiny_gguf(tiny, folder_ / "tiny.gguf");
    model_ = Model::load(folder_ / "tiny.gguf");
    calibration_ = calibrated(folder_ / "model.cal", *model_);
  }

  SessionOptions options(TextOptions texts, Precision precision = Precision::automatic) const {
    return {.threads = 2, .precision = precision, .chunk = 64, .calibration = calibration_, .texts = std::move(texts)};
  }

  std::vector<Token> tokens(int n, unsigned seed = 1) const { return random_tokens(n, model_->info().n_vocab, seed); }

  /// Answers of caches after a prompt, by steps of the session.
  static std::vector<Answer> answers(Session& session, Prefilled read) {
    std::vector<Answer> out;
    for (auto& cache : read.caches) out.push_back(greedy_answer(session, cache, read.logits, 4));
    return out;
  }

  static Prefilled ask(Session& session, const std::vector<Token>& text, const std::vector<Token>& question,
                       std::span<const CacheOptions> caches) {
    return std::move(session.prefill(text, std::span(&question, 1), caches).front());
  }

  TempFolder folder_;
  std::string calibration_;
  std::shared_ptr<const Model> model_;
};

std::vector<std::string> specs() {
  std::vector<std::string> out = {"ada(h2o):over=model",
                                  "kvzip(snapkv):after=chunk,chunk=64,even=0.01,demand=0,sharp=0", "lookahead(snapkv)",
                                  "span(snapkv:window=question)", "refit(ada(snapkv))"};
  for (const auto& method : list_methods()) out.push_back(method.name);
  return out;
}

TEST_F(SessionTexts, have_the_results_of_reading_everything_with_every_method) {
  const auto all = tokens(460, 3);
  const auto first = [&](int n) { return std::vector<Token>(all.begin(), all.begin() + n); };
  const auto question = tokens(21, 4);
  for (const auto precision : {Precision::f32, Precision::automatic}) {
    Session whole(model_, options({}, precision));
    for (const auto& spec : specs()) {
      Session session(model_, options({kMemory}, precision));
      const auto keep = options_of(spec, "64");
      int known = 0;
      for (const int n : {200, 330, 460, 460}) {
        auto read = ask(session, first(n), question, std::span(&keep, 1));
        auto wanted = ask(whole, first(n), question, std::span(&keep, 1));
        EXPECT_EQ(read.logits, wanted.logits) << spec << ", " << n << " tokens";
        EXPECT_EQ(wanted.cached_tokens, 0);
        known += read.cached_tokens;
        EXPECT_EQ(answers(session, std::move(read)), answers(whole, std::move(wanted)))
            << spec << ", " << n << " tokens";
      }
      EXPECT_GT(known, 0) << spec;
    }
  }
}

TEST_F(SessionTexts, are_known_to_other_methods_several_caches_and_several_questions) {
  Session session(model_, options({kMemory}));
  Session whole(model_, options({}));
  const std::vector<CacheOptions> caches = {options_of("snapkv:window=8", "64"), options_of("knorm", "40"),
                                            options_of("full", "", "q8_0")};
  const auto text = tokens(300);
  session.prefill(text, std::span(caches).first(1));
  const std::int64_t passed = session.tokens_passed();
  const auto alone = ask(session, text, tokens(30, 5), caches);
  EXPECT_EQ(alone.cached_tokens, 256);
  EXPECT_EQ(session.tokens_passed() - passed, 300 + 30 - 256);
  const std::vector<std::vector<Token>> questions = {tokens(30, 5), tokens(12, 6), {}};
  auto read = session.prefill(text, questions, caches);
  auto wanted = whole.prefill(text, questions, caches);
  for (std::size_t i = 0; i < questions.size(); ++i) {
    EXPECT_GE(read[i].cached_tokens, 192) << "at most a block of the known ones passes again";
    EXPECT_EQ(read[i].logits, wanted[i].logits);
    EXPECT_EQ(answers(session, std::move(read[i])), answers(whole, std::move(wanted[i])));
  }
}

TEST_F(SessionTexts, short_last_chunks_have_the_same_bits) {
  for (const int chunk : {64, 256}) {
    for (const auto precision : {Precision::f32, Precision::automatic}) {
      auto with = options({kMemory}, precision);
      with.chunk = chunk;
      auto without = with;
      without.texts = {};
      Session session(model_, with);
      Session whole(model_, without);
      const auto keep = options_of("snapkv:window=8", "64");
      for (const int n : {256, 257, 259, 270, 321}) {
        auto read = session.prefill(tokens(n), std::span(&keep, 1));
        EXPECT_EQ(read.logits, whole.prefill(tokens(n), std::span(&keep, 1)).logits) << n << " in chunks of " << chunk;
      }
    }
  }
}

TEST_F(SessionTexts, of_a_folder_are_known_to_the_next_session) {
  const auto keep = options_of("snapkv:window=8", "64");
  const TextOptions texts{kMemory, folder_ / "texts"};
  const auto text = tokens(300);
  { Session(model_, options(texts)).prefill(text, std::span(&keep, 1)); }
  Session session(model_, options(texts));
  Session whole(model_, options({}));
  auto read = ask(session, text, tokens(10, 7), std::span(&keep, 1));
  EXPECT_GE(read.cached_tokens, 192);
  EXPECT_EQ(read.logits, ask(whole, text, tokens(10, 7), std::span(&keep, 1)).logits);
  EXPECT_THROW(Session(model_, options({0, folder_ / "texts"})), UsageError);
}

TEST_F(SessionTexts, stay_within_their_memory) {
  const auto keep = options_of("snapkv:window=8", "64");
  const std::size_t some = std::size_t{300} << 10;
  Session session(model_, options({some}));
  Session whole(model_, options({}));
  for (unsigned seed = 0; seed < 20; ++seed) {
    for (auto* const one : {&session, &whole}) one->prefill(tokens(300, seed), std::span(&keep, 1));
    EXPECT_GT(session.memory().held, whole.memory().held);
    EXPECT_LE(session.memory().held, whole.memory().held + some);
  }
}

TEST_F(SessionTexts, need_no_whole_text_if_a_reading_is_stopped) {
  const auto keep = options_of("snapkv:window=8", "64");
  Session session(model_, options({kMemory}));
  Session whole(model_, options({}));
  std::atomic<int> left = 7;
  session.on_stop([&] { return left-- == 0; });
  EXPECT_THROW(session.prefill(tokens(400), std::span(&keep, 1)), Interrupted);
  session.on_stop({});
  EXPECT_EQ(session.prefill(tokens(400), std::span(&keep, 1)).logits,
            whole.prefill(tokens(400), std::span(&keep, 1)).logits);
}

/// Chats in which each turn is chosen from the whole conversation.
class ChosenAnew : public SessionTexts {
 protected:
  static GenerateOptions few() {
    GenerateOptions out;
    out.max_tokens = 70;
    out.end = EndOfSequence::ignored;
    return out;
  }
  static Conversation about() { return {std::string(150, 'a'), {}, PromptFormat::chat, {}}; }
};

const std::vector<std::string> kTurns = {"who is it?", "and then what do they do there?", "why"};

TEST_F(ChosenAnew, a_turn_reads_only_what_is_new_and_answers_as_if_all_were_read) {
  for (const std::string spec :
       {"snapkv:window=8", "ada(snapkv:window=question,rows=max)", "kvzip:after=chunk,chunk=64"}) {
    const auto keep = options_of(spec, "64");
    Session session(model_, options({kMemory}));
    Session whole(model_, options({}));
    Chat chat(session, about(), keep, few(), Protocol::aware);
    Chat other(whole, about(), keep, few(), Protocol::aware);
    EXPECT_TRUE(chat.reads_anew());
    int before = 0;
    for (const auto& words : kTurns) {
      const auto reply = chat.say(words, {});
      const auto wanted = other.say(words, {});
      chat.compress_turn();
      EXPECT_EQ(reply.generation.tokens, wanted.generation.tokens) << spec << ": " << words;
      EXPECT_EQ(reply.tokens_read + reply.cached_tokens, wanted.tokens_read);
      EXPECT_EQ(chat.tokens(), reply.tokens_read + reply.cached_tokens + few().max_tokens);
      EXPECT_GE(reply.cached_tokens, before - few().max_tokens - 2 * kBlock) << spec << ": " << words;
      EXPECT_EQ(chat.stats()->entries_per_head_mean, 64 + few().max_tokens - 1) << "the budget is the conversation's";
      before = chat.tokens();
    }
  }
}

TEST_F(ChosenAnew, a_turn_that_is_stopped_leaves_the_cache) {
  Session session(model_, options({kMemory}));
  Chat chat(session, about(), options_of("snapkv:window=8", "64"), few(), Protocol::aware);
  chat.say(kTurns[0], {});
  const auto before = chat.stats()->tokens_seen;
  session.on_stop([] { return true; });
  EXPECT_THROW(chat.say(kTurns[1], {}), Interrupted);
  session.on_stop({});
  EXPECT_EQ(chat.stats()->tokens_seen, before);
}

TEST_F(ChosenAnew, a_text_that_was_compressed_before_any_question_is_not_read_again) {
  Session session(model_, options({kMemory}));
  const auto keep = options_of("snapkv:window=8", "64");
  const Transcript text{about(), model_->tokenize(about())};
  const auto read = session.prefill(text.tokens, std::span(&keep, 1));
  session.save(folder_ / "text.kv", read.caches.front(), read.logits, text);
  Session later(model_, options({kMemory}));
  Chat chat(later, {}, keep, few(), Protocol::aware);
  chat.load(folder_ / "text.kv");
  EXPECT_FALSE(chat.reads_anew());
  EXPECT_LT(chat.say(kTurns[0], {}).tokens_read, static_cast<int>(text.tokens.size()));
  chat.reset();
  EXPECT_TRUE(chat.reads_anew());
}

}  // namespace
}  // namespace winnow::test
