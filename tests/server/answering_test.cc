// SPDX-License-Identifier: Apache-2.0
#include "server/answers/answering.h"

#include <gtest/gtest.h>
#include <spdlog/fmt/fmt.h>

#include <random>
#include <string>
#include <vector>

#include "base/utf8.h"
#include "chat/template.h"

namespace winnow::server {
namespace {

/// Records the events of one answer, and concatenates its deltas.
class Notes : public AnswerWriter {
 public:
  void refused(const std::exception_ptr& /*why*/) override { events += "refused "; }
  void begun() override { events += "begun "; }
  void goes_on() override { events += "on "; }
  void delta(int /*choice*/, AnswerDelta delta, const AnswerCost& /*now*/) override {
    ++deltas;
    all_whole = all_whole && whole_characters(delta.text) == delta.text.size() &&
                whole_characters(delta.reasoning) == delta.reasoning.size();
    said.reasoning += delta.reasoning;
    said.content += delta.text;
    for (const auto& call : delta.calls) {
      if (call.index == said.calls.size()) said.calls.push_back({call.id, call.name, {}});
      said.calls.at(call.index).arguments += call.arguments;
    }
  }
  void ended(int choice, const AnswerEnd& end, const AnswerCost& now) override {
    events += fmt::format("ended {} {} ", choice, end.has_called ? "calls" : "text");
    tokens = now.answer_tokens;
  }
  void finished(const AnswerCost& /*cost*/) override { events += "finished"; }
  void failed(const std::exception_ptr& /*error*/) override { events += "failed"; }

  std::string events;
  Message said;
  int deltas = 0;
  int tokens = 0;
  bool all_whole = true;
};

/// The answer format of a model whose template has no tools.
chat::AnswerFormat format_with_calls() {
  const chat::Template plain("test", {"{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"}, "", "");
  const Message question{Role::user, "?"};
  const chat::Tool tools[] = {{"one", "", "{}"}, {"two", "", "{}"}};
  chat::Input input;
  input.messages = std::span(&question, 1);
  input.tools = tools;
  return plain.render(input).answer;
}

std::string call_of(const std::string& name, const std::string& arguments) {
  return fmt::format("<tool_call>\n{{\"name\": \"{}\", \"arguments\": {}}}\n</tool_call>", name, arguments);
}

AnswerPlan plan_of(bool streams) {
  AnswerPlan out{.form = {}, .head = {"id", 0, "m"}, .cost = {}, .prompt_tokens = {3}};
  out.form.stream = streams;
  return out;
}

/// Sends an answer in tokens that are cut at random places.
std::shared_ptr<Notes> told(const std::string& text, const MakeReader& reader, bool streams, unsigned seed) {
  const auto writer = std::make_shared<Notes>();
  Answering answering(nullptr, plan_of(streams), reader, writer);
  answering.accepted();
  std::mt19937 random(seed);
  Generation generation{.text = text, .tokens = {}, .logprobs = {}, .finish = FinishReason::stop};
  std::size_t sent = 0;
  while (sent < text.size() && random() % 40 != 0) {  // sometimes the end arrives only with finished()
    const std::size_t bytes = std::min<std::size_t>(random() % 4, text.size() - sent);
    answering.token(0, 0, {}, text.substr(sent, bytes));
    generation.tokens.push_back(1);
    sent += bytes;
  }
  const int tokens = static_cast<int>(generation.tokens.size());
  PromptEnd end;
  end.answers.push_back(std::move(generation));
  answering.ended(0, std::move(end));
  EXPECT_EQ(writer->tokens, tokens);
  return writer;
}

TEST(AnsweringTest, TextComesInWholeCharactersAndNothingIsLost) {
  const std::string text = "a\u00e9\u20ac\U0001d11e, na\u00efve \u2013 \U0001f600\U0001f600 {not a call}";
  for (unsigned seed = 0; seed < 200; ++seed) {
    const auto notes = told(text, text_reader, true, seed);
    EXPECT_EQ(notes->said.content, text);
    EXPECT_TRUE(notes->all_whole);
    EXPECT_EQ(notes->events, "begun ended 0 text finished");
  }
}

TEST(AnsweringTest, BytesThatAreNoCharacterComeInTheEnd) {
  const auto notes = told("a\xe2\x82", text_reader, true, 1);
  EXPECT_EQ(notes->said.content, "a\xe2\x82");
}

TEST(AnsweringTest, TextAndCallsAreThoseOfTheWholeAnswer) {
  const auto format = format_with_calls();
  const std::string text = "so th\u00e9\n" + call_of("one", "{\"a\": \"\u20ac\"}") + "\n" + call_of("two", "{}");
  const auto whole = format.parse(text);
  ASSERT_EQ(whole.calls.size(), 2U);
  for (unsigned seed = 0; seed < 100; ++seed) {
    const auto notes = told(
        text, [&] { return format_reader(format); }, true, seed);
    EXPECT_EQ(notes->said.content, whole.content);
    ASSERT_EQ(notes->said.calls.size(), 2U);
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(notes->said.calls[i].name, whole.calls[i].name);
      EXPECT_EQ(notes->said.calls[i].arguments, whole.calls[i].arguments);
      EXPECT_EQ(notes->said.calls[i].id, fmt::format("call-id-0-{}", i));
    }
    EXPECT_TRUE(notes->all_whole);
    EXPECT_EQ(notes->events, "begun ended 0 calls finished");
  }
}

TEST(AnsweringTest, WithoutAStreamAnAnswerIsOneDelta) {
  const auto notes = told(
      "a\n" + call_of("one", "{}"), [] { return format_reader(format_with_calls()); }, false, 3);
  EXPECT_EQ(notes->deltas, 1);
  EXPECT_EQ(notes->said.content.front(), 'a');
  EXPECT_EQ(notes->said.calls.at(0).name, "one");
}

TEST(AnsweringTest, WhatFailsIsToldOnceAndEndsTheOthers) {
  const auto writer = std::make_shared<Notes>();
  auto plan = plan_of(true);
  plan.prompt_tokens = {3, 4};
  Answering answering(nullptr, plan, text_reader, writer);
  int cancelled = 0;
  answering.on_failure([&] { ++cancelled; });
  answering.accepted();
  PromptEnd end;
  end.error = std::make_exception_ptr(ShuttingDown());
  answering.ended(0, end);
  answering.token(1, 0, {}, "late");
  answering.ended(1, end);
  EXPECT_EQ(writer->events, "begun failed");
  EXPECT_EQ(writer->deltas, 0);
  EXPECT_EQ(cancelled, 1);
}

}  // namespace
}  // namespace winnow::server
