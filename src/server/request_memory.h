// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "server/http/message.h"
#include "server/openai/fields.h"
#include "winnow/scheduler.h"

namespace winnow::server {

/// Counts the bytes of what requests bring: the values of their bodies, texts, tokens and settings. The caches that
/// they need are promised by the scheduler. Thread-safe.
class RequestMemory {
 public:
  explicit RequestMemory(std::size_t most) : most_(most) {}

  std::size_t most() const { return most_; }
  std::size_t held() const { return held_; }

 private:
  friend class RequestShare;

  const std::size_t most_;
  std::atomic<std::size_t> held_{0};
};

/// The bytes that one request holds, until the share is gone.
class RequestShare {
 public:
  explicit RequestShare(std::shared_ptr<RequestMemory> memory) : memory_(std::move(memory)) {}
  RequestShare(const RequestShare&) = delete;
  RequestShare& operator=(const RequestShare&) = delete;
  ~RequestShare() { memory_->held_ -= bytes_; }

  /// Holds so many bytes from now on, in the place of those before. Throws ApiError (413) for more than all requests
  /// together may have, QueueFull where others hold the rest.
  void hold(std::size_t bytes);
  void also_hold(std::size_t bytes) { hold(bytes_ + bytes); }

 private:
  std::shared_ptr<RequestMemory> memory_;
  std::size_t bytes_ = 0;
};

/// parse_body(), when the share holds what the body's values and texts take at most.
Json parse_counted(const std::string& body, RequestShare& share);
/// A way to the client that holds a share for as long as anybody may answer.
std::shared_ptr<Responder> holding(std::shared_ptr<RequestShare> share, std::shared_ptr<Responder> to);

/// Bytes that making tokens of a text takes at most.
std::size_t bytes_of_tokenizing(std::size_t text_bytes);
/// Bytes of the tokens of a prompt, with all that remember them.
std::size_t bytes_of_tokens(std::size_t tokens);
/// Bytes that a request holds until it has ended, besides what the scheduler promises.
std::size_t bytes_of(const Request& request);

}  // namespace winnow::server
