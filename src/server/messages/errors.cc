// SPDX-License-Identifier: Apache-2.0
#include "server/messages/errors.h"

#include <spdlog/fmt/fmt.h>

#include "base/printable.h"
#include "server/openai/answer.h"
#include "server/openai/errors.h"

namespace winnow::server {

namespace {

/// The status of an error in this API: clients retry from 500 on, and 529 asks them to do it later.
int messages_status(int status) { return status == 501 ? 400 : status == 503 ? 529 : status; }

const char* messages_type(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 529:
      return "overloaded_error";
    default:
      return status < 500 ? "invalid_request_error" : "api_error";
  }
}

/// The sentence of an error; clients look for that of a long prompt, to shorten the conversation.
std::string messages_sentence(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const PromptTooLong& e) {
    return fmt::format("prompt is too long: {} tokens > {} maximum", e.tokens(), e.context() - 1);
  } catch (...) {
    return printable(api_error(error).what());
  }
}

Json messages_error_json(const std::exception_ptr& error) {
  const int status = messages_status(api_error(error).status());
  return {{"type", "error"}, {"error", {{"type", messages_type(status)}, {"message", messages_sentence(error)}}}};
}

}  // namespace

HttpReply messages_error(const std::exception_ptr& error) {
  return {.status = messages_status(api_error(error).status()),
          .body = text_of(messages_error_json(error)),
          .headers = headers_of(error)};
}

std::string messages_error_event(const std::exception_ptr& error) { return named_event(messages_error_json(error)); }

}  // namespace winnow::server
