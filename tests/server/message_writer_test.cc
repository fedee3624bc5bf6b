// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "server/messages/writer.h"
#include "server/openai/errors.h"
#include "server/told.h"

namespace winnow::server {
namespace {

AnswerPlan plan_of_message(bool streams) {
  AnswerPlan out{.form = {}, .head = {"msg_1", 0, "m"}, .cost = {}, .prompt_tokens = {9}};
  out.form.stream = streams;
  out.cost.prompt_tokens = 9;
  return out;
}

const std::vector<AnswerDelta> kThoughtTextAndCalls{
    {.reasoning = "hm"},
    {.reasoning = " ok", .text = "so"},
    {.text = " it is"},
    {.calls = {{0, "c0", "f", {}}}},
    {.calls = {{0, {}, {}, "{\"a\""}}},
    {.calls = {{0, {}, {}, ":1}"}, {1, "c1", "g", "{}"}}},
};

TEST(MessageWriterTest, BlocksFollowEachOtherAndPingsMayComeAnywhere) {
  const auto to = std::make_shared<Told>();
  MessageWriter writer(plan_of_message(true), to);
  writer.begun();
  writer.goes_on();
  for (const auto& delta : kThoughtTextAndCalls) writer.delta(0, delta, {});
  writer.goes_on();
  writer.ended(0, {.has_called = true}, {});
  writer.finished({});
  EXPECT_TRUE(to->streams && to->ended);
  EXPECT_EQ(event_names(to->stream),
            "message_start ping ping "
            "content_block_start content_block_delta content_block_delta content_block_delta content_block_stop "
            "content_block_start content_block_delta content_block_delta content_block_stop "
            "content_block_start content_block_delta content_block_delta content_block_stop "
            "content_block_start content_block_delta ping content_block_stop message_delta message_stop");
  EXPECT_NE(to->stream.find(R"("stop_reason":"tool_use")"), std::string::npos);
}

/// The text of a whole message that has a call with these arguments.
std::string whole_with(const std::string& arguments) {
  const auto to = std::make_shared<Told>();
  MessageWriter writer(plan_of_message(false), to);
  writer.begun();
  writer.delta(0, {.calls = {{0, "c0", "f", arguments}}}, {});
  writer.ended(0, {.has_called = true}, {});
  writer.finished({});
  return to->whole.body;
}

TEST(MessageWriterTest, ArgumentsAreToldAsTheModelHasWrittenThem) {
  const std::vector<std::string> all{
      R"({"a": 1e400})",
      R"({"a": -123456789012345678901234567890.125e-5000, "b": ["1e999", "\\\"12345"]})",
      "{\"a\": 1" + std::string(400, '0') + "}",
      R"({"a":0.1,"né":{"b":null}})",
      "{}",
  };
  for (const auto& arguments : all)
    EXPECT_NE(whole_with(arguments).find(R"("input":)" + arguments + "}"), std::string::npos) << arguments;
  const Json reply = Json::parse(whole_with(R"({"a":[1,"x"]})"));
  EXPECT_EQ(reply["content"], Json::parse(R"([{"type":"tool_use","id":"c0","name":"f","input":{"a":[1,"x"]}}])"));
}

TEST(MessageWriterTest, ArgumentsThatAreNoObjectAreTakenForAnEmptyOne) {
  for (const std::string arguments :
       {"", "[1]", "5", "{\"a\": 01}", "{\"a\": 1e}", "{\"a\": .5}", "{\"a\": 1", "{} {}"})
    EXPECT_EQ(Json::parse(whole_with(arguments))["content"][0]["input"], Json::object()) << arguments;
}

TEST(MessageWriterTest, WholeMessageHasTheSameBlocks) {
  const auto to = std::make_shared<Told>();
  MessageWriter writer(plan_of_message(false), to);
  writer.begun();
  writer.goes_on();
  writer.delta(0, {.reasoning = "hm", .text = "so", .calls = {{0, "c0", "f", "{\"a\":1}"}}}, {});
  writer.ended(0, {.has_called = true}, {});
  AnswerCost cost;
  cost.prompt_tokens = 9;
  cost.cached_tokens = 4;
  writer.finished(cost);
  const Json reply = Json::parse(to->whole.body);
  EXPECT_EQ(reply["content"],
            Json::parse(R"([{"type":"thinking","thinking":"hm","signature":""},{"type":"text","text":"so"},)"
                        R"({"type":"tool_use","id":"c0","name":"f","input":{"a":1}}])"));
  EXPECT_EQ(reply["usage"]["input_tokens"], 5);
  EXPECT_EQ(reply["usage"]["cache_read_input_tokens"], 4);
  EXPECT_TRUE(to->stream.empty());
}

TEST(MessageWriterTest, ErrorEndsAStream) {
  const auto to = std::make_shared<Told>();
  MessageWriter writer(plan_of_message(true), to);
  writer.begun();
  writer.failed(std::make_exception_ptr(ApiError(503, "later")));
  EXPECT_EQ(event_names(to->stream), "message_start ping error");
  EXPECT_NE(to->stream.find(R"({"type":"error","error":{"type":"overloaded_error","message":"later"}})"),
            std::string::npos);
  EXPECT_TRUE(to->ended);
}

}  // namespace
}  // namespace winnow::server
