// SPDX-License-Identifier: Apache-2.0
// Tests of conversations: the tokens of their turns, and caches from which a turn is removed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "engine/model_impl.h"
#include "engine/wording.h"
#include "support/temp.h"
#include "support/tiny_gguf.h"
#include "winnow/error.h"
#include "winnow/session.h"

namespace winnow {
namespace {

std::shared_ptr<const Model> load_tiny(const std::string& chat_template) {
  const test::TempFolder folder;
  test::TinyModel tiny;
  tiny.chat_template = chat_template;
  write_tiny_gguf(tiny, folder / "tiny.gguf");
  return Model::load(folder / "tiny.gguf");
}

/// Text of a question, written by a model's template for conversations or for tools, or by the user's template.
std::string asked(const std::vector<chat::Tool>& tools, const std::string& user = {}) {
  const test::TempFolder folder;
  test::TinyModel tiny;
  tiny.chat_template = "usual {{ messages[0].content }}";
  tiny.tool_use_template =
      "of tools {{ messages[0].content }}{% for t in tools %}{{ t | tojson }}{% endfor %}"
      "{% for m in messages %}{% for c in m.tool_calls %}[CALL]{{ c.function | tojson }}[/CALL]{% endfor %}{% endfor "
      "%}";
  write_tiny_gguf(tiny, folder / "tiny.gguf");
  ModelOptions options;
  options.chat_template = user;
  const auto model = Model::load(folder / "tiny.gguf", options);
  const std::vector<Message> messages{{Role::user, "Who?"}};
  chat::Input input;
  input.messages = messages;
  input.tools = tools;
  return write(*model, input, ControlTokens::as_text).text.text;
}

void append(std::vector<Token>& to, const std::vector<Token>& more) { to.insert(to.end(), more.begin(), more.end()); }

/// A conversation in which user and assistant take turns.
Conversation chat(const std::string& text, const std::vector<std::string>& said, const std::string& system = "",
                  PromptFormat format = PromptFormat::chat) {
  Conversation out{text, {}, format, ControlTokens::as_text};
  if (!system.empty()) out.messages.push_back({Role::system, system});
  for (std::size_t i = 0; i < said.size(); ++i)
    out.messages.push_back({i % 2 == 0 ? Role::user : Role::assistant, said[i]});
  return out;
}

/// Tokens that a chat has read at the end: its turns and the answers between them.
std::vector<Token> turn_by_turn(const Model& model, const Conversation& whole, Past past = Past::unchanged) {
  Conversation read = whole;
  read.messages.clear();
  std::vector<Token> out;
  for (const Message& message : whole.messages) {
    if (message.role == Role::assistant) append(out, model.vocab().tokenize(message.content));
    if (message.role == Role::user && read.last() != nullptr) {
      const Turn turn = model.turn(read, message.content);
      EXPECT_EQ(turn.past, past);
      append(out, turn.tokens);
    }
    const bool is_first = message.role == Role::user && read.last() == nullptr;
    read.messages.push_back(message);
    if (is_first) out = model.tokenize(read);
  }
  return out;
}

/// Text with the names of control tokens, but without spaces, because SentencePiece puts one before each text.
std::string text_of(const Model& model, const std::vector<Token>& tokens) {
  std::string text;
  for (const Token token : tokens) text += model.vocab().name(token);
  for (const std::string space : {"\u2581", " "}) {
    for (auto at = text.find(space); at != std::string::npos; at = text.find(space)) text.erase(at, space.size());
  }
  return text;
}

const std::vector<std::string> kSaid = {"one <|im_end|>", "two", "three", "four", "five"};

TEST(Turns, make_the_whole_conversation) {
  for (const auto* name : {"chatml", "llama2", "gemma", "zephyr", "llama3"}) {
    const auto model = load_tiny(name);
    for (const std::string system : {"", "be brief"}) {
      for (const std::string text : {"", "a text"}) {
        const Conversation conversation = chat(text, kSaid, system);
        EXPECT_EQ(text_of(*model, turn_by_turn(*model, conversation)), text_of(*model, model->tokenize(conversation)))
            << name;
      }
    }
  }
}

TEST(Questions, leave_an_answer_empty_that_is_awaited) {
  Conversation none{"a text", {}, PromptFormat::chat, ControlTokens::as_text};
  none.messages = {{Role::system, "be brief"}};
  EXPECT_FALSE(none.awaits_answer());
  const Conversation asked = none.with_question("one");
  const std::vector<Message> one = {{Role::system, "be brief"}, {Role::user, "one"}};
  EXPECT_EQ(asked.messages, one);
  EXPECT_TRUE(asked.awaits_answer());
  Conversation answered = asked;
  answered.messages.push_back({Role::assistant, "two"});
  answered.messages.push_back({Role::system, "be briefer"});
  EXPECT_FALSE(answered.awaits_answer());
  auto expected = answered.messages;
  expected.push_back({Role::user, "three"});
  EXPECT_EQ(answered.with_question("three").messages, expected);
  const std::vector<Message> open = {
      {Role::system, "be brief"}, {Role::user, "one"}, {Role::assistant, ""}, {Role::user, "two"}};
  EXPECT_EQ(asked.with_question("two").messages, open);
}

TEST(Turns, keep_the_roles_of_their_messages) {
  const auto model = load_tiny("chatml");
  const std::vector<Message> messages = {{Role::user, "one"},
                                         {Role::user, "two"},
                                         {Role::assistant, "three"},
                                         {Role::system, "four"},
                                         {Role::user, "five"}};
  std::string expected;
  for (const auto& message : messages)
    expected += std::string("<|im_start|>") + name_of(message.role) + "\n" + message.content + "<|im_end|>\n";
  expected += "<|im_start|>assistant\n";
  std::erase(expected, ' ');
  EXPECT_EQ(text_of(*model, model->tokenize(Conversation{"", messages})), "<s>" + expected);
}

TEST(Turns, begin_as_a_prompt_does) {
  const auto model = load_tiny("chatml");
  const Prompt prompt =
      model->tokenize(PromptText{"a text", "a question", "be brief", PromptFormat::chat, ControlTokens::as_text});
  std::vector<Token> both = prompt.text;
  append(both, prompt.question);
  EXPECT_EQ(model->tokenize(chat("a text", {"a question"}, "be brief")), both);
}

TEST(Turns, follow_a_text_that_is_ready_for_any_question) {
  for (const auto format : {PromptFormat::chat, PromptFormat::raw}) {
    const auto model = load_tiny("chatml");
    const Prompt prompt =
        model->tokenize(PromptText{"a text", "a question", "be brief", format, ControlTokens::as_text});
    const Conversation text = chat("a text", {}, "be brief", format);
    EXPECT_EQ(model->tokenize(text), prompt.text);
    EXPECT_EQ(model->turn(text, "a question").tokens, prompt.question);
  }
}

TEST(Turns, leave_an_answer_empty_that_is_not_there) {
  const auto model = load_tiny("chatml");
  const Conversation asked = chat("a text", {"one"}, "be brief");
  const Conversation whole = chat("a text", {"one", "", "two"}, "be brief");
  std::vector<Token> read = model->tokenize(asked);
  append(read, model->turn(asked, "two").tokens);
  EXPECT_EQ(read, model->tokenize(whole));
}

TEST(Turns, raw_ones_are_bytes) {
  const auto model = load_tiny("");
  const Conversation conversation = chat("", {"a", "b", "c"}, "", PromptFormat::raw);
  EXPECT_EQ(text_of(*model, turn_by_turn(*model, conversation)), "<s>abc");
  const auto chatml = load_tiny("chatml");
  EXPECT_EQ(model->tokenize(chat("", {"a"})), chatml->tokenize(chat("", {"a"}))) << "there is no template";
}

TEST(Turns, say_when_the_template_rewrites_the_past) {
  const std::string chat_template =  // writes the mark before an answer's text only if it gets the answer
      "{% for message in messages %}<{{ message.role }}>{{ '<final>' if message.role == 'assistant' }}"
      "{{ message.content }}{% endfor %}{{ '<assistant>' if add_generation_prompt }}";
  turn_by_turn(*load_tiny(chat_template), chat("", kSaid), Past::rewritten);
}

TEST(Turns, say_when_the_template_leaves_out_what_an_answer_began_with) {
  const std::string chat_template =
      "{% for message in messages %}<{{ message.role }}>{{ message.content.split('</think>')[-1] }}{% endfor %}"
      "{{ '<assistant>' if add_generation_prompt }}";
  const auto model = load_tiny(chat_template);
  turn_by_turn(*model, chat("", {"one", "<think>two</think>three", "four"}), Past::rewritten);
  turn_by_turn(*model, chat("", {"one", "three", "four"}), Past::unchanged);
}

TEST(Turns, of_the_real_model_make_the_whole_conversation) {
  const auto path = test::real_model();
  if (!path) GTEST_SKIP() << "WINNOW_TEST_MODEL is not set";
  const auto model = Model::load(*path);
  const Conversation conversation = chat("", kSaid, "be brief");
  EXPECT_EQ(turn_by_turn(*model, conversation), model->tokenize(conversation));
}

TEST(Messages, have_their_zero_bytes_and_names_of_control_tokens_as_text) {
  const auto model = load_tiny("chatml");
  const std::string words("a\0b </s> c", 10);
  const std::vector<Message> messages = {
      {Role::system, words}, {Role::user, words}, {Role::assistant, words}, {Role::user, words}};
  const auto tokens = model->tokenize(Conversation{"", messages, PromptFormat::chat, ControlTokens::as_text});
  const auto text = text_of(*model, tokens);
  std::string expected = words;
  std::erase(expected, ' ');
  std::size_t times = 0;
  for (auto at = text.find(expected); at != std::string::npos; at = text.find(expected, at + 1)) ++times;
  EXPECT_EQ(times, messages.size());
  const Token end = model->vocab().end_of_text();
  EXPECT_EQ(std::ranges::count(tokens, end), 0);
  const auto parsed = model->tokenize(Conversation{"", messages, PromptFormat::chat, ControlTokens::parsed});
  EXPECT_EQ(std::ranges::count(parsed, end), std::ssize(messages));
}

TEST(Messages, are_refused_that_the_template_leaves_out) {
  const auto model = load_tiny("{% for m in messages if m.role != 'system' %}{{ m.content }}{% endfor %}");
  const Conversation with_rules{"", {{Role::user, "one"}, {Role::system, "be brief"}}};
  try {
    model->tokenize(with_rules);
    FAIL() << "nothing was refused";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("message 2, which is the system's"), std::string::npos) << error.what();
  }
  EXPECT_EQ(text_of(*model, model->tokenize(Conversation{"", {{Role::user, "one"}}})), "<s>one");
}

TEST(Turns, refuse_what_has_no_place_for_an_answer) {
  const auto model = load_tiny("chatml");
  EXPECT_THROW(model->tokenize(chat("", {"a", "b"})), UsageError);
  EXPECT_THROW(model->tokenize(chat("", {})), InputError);
  EXPECT_THROW(model->tokenize(chat("", {""})), InputError);
}

class GoBack : public testing::TestWithParam<const char*> {};

std::vector<Token> some_tokens(int n, int first) {
  std::vector<Token> out;
  for (int i = 0; i < n; ++i) out.push_back(3 + (first + 7 * i) % 200);
  return out;
}

TEST(Conversations, WithToolsAreWrittenByTheTemplateOfTools) {
  const std::vector<chat::Tool> tools{{"clock", "Tells the time.", R"({"type":"object","properties":{}})"}};
  EXPECT_EQ(asked({}), "usual Who?");
  EXPECT_TRUE(asked(tools).starts_with("of tools Who?{")) << asked(tools);
  const auto by_user = asked(tools, "the user's {{ messages[0].content }} {{ messages[-1].content }}");
  EXPECT_TRUE(by_user.starts_with("the user's # Tools")) << by_user;
}

TEST_P(GoBack, leaves_the_cache_as_it_was) {
  const auto model = load_tiny("");
  Session session(model, {.threads = 2});
  CacheOptions options;
  options.spec = Spec::parse(GetParam());
  options.budget = Budget::parse("40");
  auto prefilled = session.prefill(some_tokens(100, 1), std::span(&options, 1));
  Cache& cache = prefilled.caches.front();
  session.extend(cache, some_tokens(5, 2));
  Cache untouched = cache.clone();

  CacheMark mark = cache.mark();
  session.extend(cache, some_tokens(70, 3));
  cache.go_back(std::move(mark));

  EXPECT_EQ(cache.stats().tokens_seen, 105);
  EXPECT_EQ(cache.kept(), untouched.kept());
  const auto expected = session.extend(untouched, some_tokens(30, 4));
  const auto logits = session.extend(cache, some_tokens(30, 4));
  for (std::size_t i = 0; i < logits.size(); ++i)
    ASSERT_NEAR(logits[i], expected[i], 1e-3 * (1 + std::abs(expected[i])));
}

INSTANTIATE_TEST_SUITE_P(methods, GoBack,
                         testing::Values("full", "snapkv:window=8", "snapkv:window=8,positions=cache", "streaming-llm",
                                         "h2o", "cam", "quest"));

}  // namespace
}  // namespace winnow
