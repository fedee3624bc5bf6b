// SPDX-License-Identifier: Apache-2.0
#include "server/responses/errors.h"

#include "base/clock.h"
#include "base/printable.h"
#include "server/openai/errors.h"
#include "server/responses/response.h"

namespace winnow::server {

namespace {

/// The code of a failed response, by names that clients know.
std::string failure_code(const ApiError& error) {
  if (error.code() == "context_length_exceeded") return error.code();
  switch (error.status()) {
    case 429:
      return "rate_limit_exceeded";
    case 503:
      return "server_is_overloaded";
    default:
      return error.status() < 500 ? "invalid_prompt" : "server_error";
  }
}

/// A stream that consists of a failure.
HttpReply failed_stream(const std::exception_ptr& error) {
  const AnswerHead head{.id = new_id("resp_"), .created = seconds_since_1970(), .model = ""};
  Json created = response_json(head, "in_progress", Json::object());
  Json failed = response_json(head, "failed", Json::object());
  failed["error"] = failure_json(error);
  return {.body = named_event({{"type", "response.created"}, {"response", created}, {"sequence_number", 0}}) +
                  named_event({{"type", "response.failed"}, {"response", failed}, {"sequence_number", 1}}),
          .type = "text/event-stream"};
}

}  // namespace

Json failure_json(const std::exception_ptr& error) {
  const ApiError known = api_error(error);
  return {{"code", failure_code(known)}, {"message", printable(known.what())}};
}

HttpReply responses_error(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const PromptTooLong& e) {
    if (e.is_for_stream()) return failed_stream(error);
  } catch (...) {
  }
  return error_reply(error);
}

}  // namespace winnow::server
