// SPDX-License-Identifier: Apache-2.0
#include "server/openai/errors.h"

#include <spdlog/fmt/fmt.h>

#include <new>

#include "base/printable.h"
#include "server/engine_thread.h"
#include "server/openai/answer.h"
#include "winnow/budget_error.h"
#include "winnow/documents.h"

namespace winnow::server {

namespace {

const char* type_of(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 429:
      return "rate_limit_error";
    case 501:
      return "not_implemented_error";
    case 503:
      return "unavailable_error";
    default:
      return status < 500 ? "invalid_request_error" : "server_error";
  }
}

std::string error_body(const ApiError& error) {
  const Json out{{"error",
                  {{"message", printable(error.what())},
                   {"type", type_of(error.status())},
                   {"param", text_or_null(printable(error.param()))},
                   {"code", text_or_null(error.code())}}}};
  return out.dump();
}

}  // namespace

// Programs that shorten their conversation look for "prompt is too long" or "exceeds the available context size".
PromptTooLong::PromptTooLong(std::size_t tokens, Count count, int context, const std::string& field)
    : ApiError(400,
               fmt::format("the prompt is too long: it has {}{} tokens, which exceeds the available context size of {} "
                           "tokens with its answer; shorten it, or start the server with a larger --context",
                           count == Count::least ? "at least " : "", tokens, context),
               field, "context_length_exceeded"),
      tokens_(tokens),
      context_(context) {}

ApiError api_error(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const ApiError& e) {
    return e;
  } catch (const QueueFull& e) {
    return {429, e.what(), {}, "rate_limit_exceeded"};
  } catch (const ShuttingDown& e) {
    return {503, e.what()};
  } catch (const Interrupted&) {
    return {503, ShuttingDown().what()};
  } catch (const BudgetError& e) {
    return {400, e.what(), "winnow.budget"};
  } catch (const UsageError& e) {
    return {400, e.what()};
  } catch (const UnknownDocument& e) {
    return {404, e.what(), {}, "document_not_found"};
  } catch (const StoreError& e) {
    return {503, e.what(), {}, "store_unavailable"};
  } catch (const InputError& e) {
    return {400, e.what()};
  } catch (const MemoryError& e) {
    return {400, e.what(), {}, "insufficient_memory"};
  } catch (const std::bad_alloc&) {
    return {503, "the server is out of memory: try again later"};
  } catch (const std::exception&) {  // its message may reveal internals
    return {500, "an internal error occurred: see the server's log"};
  }
}

std::vector<Header> headers_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const QueueFull& e) {
    return {{"Retry-After", std::to_string(e.retry_after())}};
  } catch (const ShuttingDown&) {
    return {{"Retry-After", "1"}};
  } catch (const StoreError&) {
    return {{"Retry-After", "5"}};
  } catch (...) {
    return {};
  }
}

std::exception_ptr late_error(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const MemoryError& e) {
    return std::make_exception_ptr(ApiError(503, e.what(), {}, "insufficient_memory"));
  } catch (...) {
    return error;
  }
}

HttpReply error_reply(const ApiError& error) { return {error.status(), error_body(error)}; }

HttpReply error_reply(const std::exception_ptr& error) {
  HttpReply out = error_reply(api_error(error));
  out.headers = headers_of(error);
  return out;
}

int status_of(const std::exception_ptr& error) { return api_error(error).status(); }

std::string sentence_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  }
}

std::string reason_of(const std::exception_ptr& error) {
  const ApiError known = api_error(error);
  return known.code().empty() ? type_of(known.status()) : known.code();
}

std::string error_text(const std::exception_ptr& error) { return error_body(api_error(error)); }

}  // namespace winnow::server
