// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "server/openai/errors.h"
#include "server/responses/writer.h"
#include "server/told.h"

namespace winnow::server {
namespace {

AnswerPlan plan_of_response(bool streams) {
  AnswerPlan out{.form = {}, .head = {"resp_1", 0, "m"}, .cost = {}, .prompt_tokens = {9}, .repeated = Json::object()};
  out.form.stream = streams;
  return out;
}

const std::vector<AnswerDelta> kDeltas{
    {.reasoning = "hm"},
    {.reasoning = " ok", .text = "so"},
    {.calls = {{0, "c0", "f", "{"}}},
    {.calls = {{0, {}, {}, "}"}, {1, "c1", "g", "{}"}}},
};

/// The reply or the stream for the deltas of an answer.
std::shared_ptr<Told> told_deltas(bool streams) {
  auto out = std::make_shared<Told>();
  ResponseWriter writer(nullptr, plan_of_response(streams), out);
  writer.begun();
  writer.goes_on();
  for (const auto& delta : kDeltas) writer.delta(0, delta, {});
  writer.goes_on();
  writer.ended(0, {.has_called = true}, {});
  writer.finished({});
  return out;
}

TEST(ResponseWriterTest, ItemsFollowEachOtherAndProgressMayComeAnywhere) {
  const auto to = told_deltas(true);
  EXPECT_TRUE(to->streams && to->ended);
  const std::string item = "response.output_item.";
  const std::string part = "response.content_part.";
  const std::string arguments = "response.function_call_arguments.";
  EXPECT_EQ(event_names(to->stream),
            "response.created response.in_progress response.in_progress " +        //
                item + "added " + part + "added response.reasoning_text.delta " +  //
                "response.reasoning_text.delta response.reasoning_text.done " +    //
                part + "done " + item + "done " +                                  //
                item + "added " + part + "added response.output_text.delta " +     //
                "response.output_text.done " + part + "done " + item + "done " +   //
                item + "added " + arguments + "delta " + arguments + "delta " +    //
                arguments + "done " + item + "done " +                             //
                item + "added " + arguments + "delta response.in_progress " +      //
                arguments + "done " + item + "done response.completed");
}

TEST(ResponseWriterTest, WholeResponseHasTheSameItems) {
  const auto to = told_deltas(false);
  EXPECT_TRUE(to->stream.empty());
  const Json reply = Json::parse(to->whole.body);
  ASSERT_EQ(reply["output"].size(), 4U);
  EXPECT_EQ(reply["output"][0]["content"][0]["text"], "hm ok");
  EXPECT_EQ(reply["output"][1]["content"][0]["text"], "so");
  EXPECT_EQ(reply["output"][2]["arguments"], "{}");
  EXPECT_EQ(reply["output"][3]["call_id"], "c1");
  EXPECT_EQ(reply["status"], "completed");
}

TEST(ResponseWriterTest, FailureEndsAStreamWithWhatIsThere) {
  const auto to = std::make_shared<Told>();
  ResponseWriter writer(nullptr, plan_of_response(true), to);
  writer.begun();
  writer.delta(0, {.text = "half"}, {});
  writer.failed(std::make_exception_ptr(ApiError(503, "later")));
  EXPECT_TRUE(to->ended);
  EXPECT_TRUE(event_names(to->stream).ends_with("response.output_text.delta response.failed"));
  EXPECT_NE(to->stream.find(R"("error":{"code":"server_is_overloaded","message":"later"})"), std::string::npos);
}

}  // namespace
}  // namespace winnow::server
