// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <vector>

#include "server/http/message.h"
#include "winnow/error.h"

namespace winnow::server {

/// An error of a request, in the format of OpenAI's API.
class ApiError : public Error {
 public:
  ApiError(int status, const std::string& sentence, std::string param = {}, std::string code = {})
      : Error(sentence), status_(status), param_(std::move(param)), code_(std::move(code)) {}

  int status() const { return status_; }
  const std::string& param() const { return param_; }  ///< the field; empty: none
  const std::string& code() const { return code_; }    ///< empty: none

 private:
  int status_;
  std::string param_;
  std::string code_;
};

/// An invalid field of a request: 400.
class FieldError : public ApiError {
 public:
  FieldError(const std::string& field, const std::string& sentence) : ApiError(400, sentence, field) {}
};

/// A feature that winnow does not have: 501.
class NotImplemented : public ApiError {
 public:
  NotImplemented(const std::string& field, const std::string& sentence) : ApiError(501, sentence, field) {}
};

/// A prompt that leaves no room for an answer: 400 with code `context_length_exceeded`.
class PromptTooLong : public ApiError {
 public:
  /// `least`: it has at least this number of tokens.
  enum class Count : std::uint8_t { exact, least };
  PromptTooLong(std::size_t tokens, Count count, int context, const std::string& field);

  std::size_t tokens() const { return tokens_; }
  int context() const { return context_; }
  /// True if the answer would have been a stream. Some APIs then send this error as a stream.
  bool is_for_stream() const { return is_for_stream_; }
  void set_for_stream() { is_for_stream_ = true; }

 private:
  std::size_t tokens_;
  int context_;
  bool is_for_stream_ = false;
};

/// An error of a request that has begun. Lack of memory is then not the request's fault.
std::exception_ptr late_error(const std::exception_ptr& error);

/// Converts any exception to an error of a request.
ApiError api_error(const std::exception_ptr& error);
/// Headers of the error's reply.
std::vector<Header> headers_of(const std::exception_ptr& error);

/// Formats any exception as `{"error": {"message", "type", "param", "code"}}`, with its status and headers.
HttpReply error_reply(const std::exception_ptr& error);
HttpReply error_reply(const ApiError& error);

/// The HTTP status of an error.
int status_of(const std::exception_ptr& error);

/// The original message: for the log, not for clients.
std::string sentence_of(const std::exception_ptr& error);

/// The name under which an error is counted: its code, or else its type.
std::string reason_of(const std::exception_ptr& error);

/// The same JSON, for a stream that has begun.
std::string error_text(const std::exception_ptr& error);

}  // namespace winnow::server
