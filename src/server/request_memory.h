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

/// Counts the bytes of requests' own data: values of their bodies, texts, tokens and settings. The scheduler promises
/// the memory of their caches. Thread-safe.
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

/// The bytes that one request holds during the share's lifetime.
class RequestShare {
 public:
  explicit RequestShare(std::shared_ptr<RequestMemory> memory) : memory_(std::move(memory)) {}
  RequestShare(const RequestShare&) = delete;
  RequestShare& operator=(const RequestShare&) = delete;
  ~RequestShare() { memory_->held_ -= bytes_; }

  /// Holds `bytes` from now on, in place of the previous number. Throws ApiError (413) if that exceeds the limit of all
  /// requests together, QueueFull if other requests hold the rest.
  void hold(std::size_t bytes);
  void also_hold(std::size_t bytes) { hold(bytes_ + bytes); }

 private:
  std::shared_ptr<RequestMemory> memory_;
  std::size_t bytes_ = 0;
};

/// Calls parse_body() after the share holds the most that the body's values and texts can take.
Json parse_counted(const std::string& body, RequestShare& share);
/// A responder that keeps a share alive.
std::shared_ptr<Responder> holding(std::shared_ptr<RequestShare> share, std::shared_ptr<Responder> to);

/// The most bytes that tokenizing a text takes.
std::size_t bytes_of_tokenizing(std::size_t text_bytes);
/// Bytes of all copies of a prompt's tokens.
std::size_t bytes_of_tokens(std::size_t tokens);
/// Bytes that a request holds until its end, besides those that the scheduler promises.
std::size_t bytes_of(const Request& request);

}  // namespace winnow::server
