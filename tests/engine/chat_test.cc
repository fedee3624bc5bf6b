// SPDX-License-Identifier: Apache-2.0
// Questions about a text that is read once, and chats: answers equal those of reading each prompt by itself.
#include "winnow/chat.h"

#include <gtest/gtest.h>

#include "chat/placement.h"
#include "support/cache_options.h"
#include "support/temp.h"
#include "support/tiny_gguf.h"
#include "winnow/error.h"
#include "winnow/questions.h"

namespace winnow {
namespace {

using test::options_of;

const std::string kText = "the first part of a text, and then the rest of it";

class ChatTest : public testing::Test {
 protected:
  ChatTest() {
    test::TinyModel tiny;
    tiny.chat_template = "chatml";
    write_tiny_gguf(tiny, folder_ / "tiny.gguf");
    model_ = Model::load(folder_ / "tiny.gguf");
    session_ = std::make_unique<Session>(model_, SessionOptions{1, Precision::f32});
  }

  Conversation about(const std::string& text) const { return {text, {}, PromptFormat::chat, {}}; }

  Prompt tokenized(const std::string& question) const {
    PromptText prompt;
    prompt.text = kText;
    prompt.question = question;
    return model_->tokenize(prompt);
  }

  static std::vector<Token> joined(std::vector<Token> a, const std::vector<Token>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  }

  static GenerateOptions few_tokens() {
    GenerateOptions out;
    out.max_tokens = 5;
    out.end = EndOfSequence::ignored;
    return out;
  }

  test::TempFolder folder_;
  std::shared_ptr<const Model> model_;
  std::unique_ptr<Session> session_;
};

TEST_F(ChatTest, several_questions_have_the_tokens_of_each) {
  const std::vector<std::string> asked = {"who?", "and where is it?", ""};
  for (const std::size_t count : {2, 3}) {
    const auto [text, questions] = model_->tokenize(about(kText), std::span(asked).first(count));
    ASSERT_EQ(questions.size(), count);
    for (std::size_t i = 0; i < count; ++i) {
      const Prompt alone = tokenized(asked[i]);
      if (count == 2) {
        EXPECT_EQ(text, alone.text);
      }
      EXPECT_EQ(joined(text, questions[i]), joined(alone.text, alone.question));
    }
  }
  EXPECT_THROW(model_->tokenize(about(""), std::vector<std::string>{"", ""}), InputError);
}

TEST_F(ChatTest, questions_are_asked_as_if_alone) {
  const auto [text, questions] =
      model_->tokenize(about(kText), std::vector<std::string>{"who?", "where is it?", "why"});
  const std::vector<CacheOptions> caches = {options_of("full"), options_of("snapkv:window=4", "16")};
  for (const auto protocol : {Protocol::aware, Protocol::agnostic}) {
    Questions together(*session_, text, questions, protocol, caches);
    EXPECT_EQ(together.text() == nullptr, protocol == Protocol::aware);
    for (std::size_t i = 0; i < questions.size(); ++i) {
      auto one = together.ask(i);
      ASSERT_EQ(one.caches.size(), caches.size());
      for (std::size_t c = 0; c < caches.size(); ++c) {
        const auto options = std::span(caches).subspan(c, 1);
        std::vector<Token> read = text;
        if (protocol == Protocol::aware) read.insert(read.end(), questions[i].begin(), questions[i].end());
        auto alone = session_->prefill(read, options);
        ASSERT_EQ(one.logits.size(), caches.size());
        if (protocol == Protocol::aware) {
          EXPECT_EQ(one.logits[c], alone.logits);
        }
        EXPECT_EQ(one.stats[c].entries_per_head_mean, alone.caches.front().stats().entries_per_head_mean);
        if (protocol == Protocol::agnostic) {
          EXPECT_EQ(one.logits[c], session_->extend(alone.caches.front(), questions[i]));
        }
        EXPECT_EQ(one.caches[c].kept(), alone.caches.front().kept());
      }
    }
  }
}

TEST_F(ChatTest, a_question_without_tokens_is_answered_from_the_text) {
  const auto text = model_->vocab().tokenize(kText);
  const auto full = options_of("full");
  const auto read = session_->prefill(text, std::span(&full, 1));
  for (const auto protocol : {Protocol::aware, Protocol::agnostic}) {
    Questions nothing(*session_, text, std::vector<std::vector<Token>>(1), protocol, std::span(&full, 1));
    EXPECT_EQ(nothing.ask(0).logits.front(), read.logits);
  }
}

/// Greedy answer after tokens that are read as one prompt.
std::vector<Token> answer_after(Session& session, const std::vector<Token>& tokens, const GenerateOptions& options) {
  const auto full = options_of("full", "", "f32");
  auto read = session.prefill(tokens, std::span(&full, 1));
  Cache* const cache = &read.caches.front();
  return generate(session, std::span(&cache, 1), std::span(&read.logits, 1), options).front().tokens;
}

TEST_F(ChatTest, answers_are_those_to_all_tokens_read_at_once) {
  Chat chat(*session_, about(kText), options_of("full", "", "f32"), few_tokens());
  Conversation so_far = about(kText);
  std::vector<Token> tokens;
  for (const std::string words : {"who is it?", "and then?", "why"}) {
    const auto turn = model_->turn(so_far, words).tokens;
    so_far.messages.push_back({Role::user, words});
    if (tokens.empty()) {
      tokens = model_->tokenize(so_far);
    } else {
      tokens.insert(tokens.end(), turn.begin(), turn.end());
    }
    const auto expected = answer_after(*session_, tokens, few_tokens());
    const Generation answer = chat.say(words, {}).generation;
    EXPECT_EQ(answer.tokens, expected);
    tokens.insert(tokens.end(), answer.tokens.begin(), answer.tokens.end());
    so_far.messages.push_back({Role::assistant, answer.text});
  }
}

TEST_F(ChatTest, a_line_that_fails_leaves_the_conversation_as_it_was) {
  Chat chat(*session_, about(kText), options_of("full"), few_tokens());
  Chat other(*session_, about(kText), options_of("full"), few_tokens());
  chat.say("who is it?", {});
  other.say("who is it?", {});
  const int before = chat.tokens();
  session_->on_stop([] { return true; });
  EXPECT_THROW(chat.say("and then?", {}), Interrupted);
  session_->on_stop({});
  EXPECT_EQ(chat.tokens(), before);
  EXPECT_EQ(chat.say("why", {}).generation.tokens, other.say("why", {}).generation.tokens);
}

/// A model that thinks before it answers. A rule tells its template in which messages the thinking is repeated.
class ThinkingChatTest : public testing::Test {
 protected:
  void open(const std::string& where_thoughts_are_told) {
    test::TinyModel tiny;
    tiny.chat_template =
        "{%- for m in messages %}{{ '<|im_start|>' + m.role + '\\n' }}"
        "{%- if m.reasoning_content and (" +
        where_thoughts_are_told +
        ") %}{{ '<think>\\n' + m.reasoning_content + '\\n</think>\\n\\n' }}{% endif %}"
        "{{- m.content + '<|im_end|>\\n' }}{% endfor %}"
        "{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";
    write_tiny_gguf(tiny, folder_ / "tiny.gguf");
    model_ = Model::load(folder_ / "tiny.gguf");
    session_ = std::make_unique<Session>(model_, SessionOptions{1, Precision::f32});
    GenerateOptions thinks;
    thinks.grammar = R"(root ::= "<think>\nwho else?\n</think>\n\nthe prince")";
    chat_.emplace(*session_, Conversation{kText, {}, PromptFormat::chat, {}}, options_of("full"), thinks);
  }

  Reply say(const std::string& words) {
    return chat_->say(words, [this](const AnswerPart& part) {
      EXPECT_TRUE(part.reasoning.empty() || said_.empty()) << "thinking comes first";
      thought_ += part.reasoning;
      said_ += part.content;
    });
  }

  test::TempFolder folder_;
  std::shared_ptr<const Model> model_;
  std::unique_ptr<Session> session_;
  std::optional<Chat> chat_;
  std::string thought_;
  std::string said_;
};

TEST_F(ThinkingChatTest, thinking_is_apart_from_what_is_said) {
  open("true");
  const Reply reply = say("who is it?");
  EXPECT_EQ(chat::trimmed(reply.message.reasoning), "who else?");
  EXPECT_EQ(reply.message.content, "the prince");
  EXPECT_EQ(thought_, reply.message.reasoning);
  EXPECT_EQ(said_, reply.message.content);
}

TEST_F(ThinkingChatTest, a_template_that_keeps_thoughts_goes_on_from_the_cache) {
  open("true");
  const int first = say("who is it?").tokens_read;
  said_.clear();
  EXPECT_LT(say("why?").tokens_read, first);
}

TEST_F(ThinkingChatTest, a_template_that_drops_thoughts_has_the_conversation_read_without_them) {
  open("loop.last");
  say("who is it?");
  said_.clear();
  const Reply second = say("why?");
  const Conversation as_told{kText,
                             {{Role::user, "who is it?"}, {Role::assistant, "the prince"}, {Role::user, "why?"}},
                             PromptFormat::chat,
                             {}};
  const auto read = model_->tokenize(as_told);
  EXPECT_EQ(second.tokens_read, static_cast<int>(read.size()));
  EXPECT_EQ(chat_->tokens(), second.tokens_read + static_cast<int>(second.generation.tokens.size()));
}

}  // namespace
}  // namespace winnow
