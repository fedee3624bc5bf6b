// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "server/http/message.h"
#include "server/post.h"

namespace winnow::server {

/// A request's answer on its way from a handler (any thread) to its connection (the HTTP thread).
class Exchange : public Responder, public std::enable_shared_from_this<Exchange> {
 public:
  /// Calls `wake` in the HTTP thread when there is more to send. At most `most` bytes may wait for the client.
  Exchange(Post to_http, std::function<void()> wake, std::size_t most);

  void send(HttpReply reply) override;
  void begin() override;
  void write(std::string bytes) override;
  void end() override;
  void on_gone(std::function<void()> action) override;
  void on_silence(std::function<void()> action) override;

  // The functions below are for the connection, in the HTTP thread.

  /// True if the connection has something to do.
  bool is_ready() const { return reply_ || !pending_.empty() || ended_ || overflowed_ || (begun_ && !begin_taken_); }
  std::optional<HttpReply> take_reply();
  /// True once, when a stream has begun.
  bool take_begin();
  std::string take_bytes();
  bool is_ended() const { return ended_; }
  /// Calls the handler's on_silence() action.
  void break_silence() {
    if (on_silence_) on_silence_();
  }
  bool has_sent_all() const { return pending_.empty(); }
  bool is_overflowed() const { return overflowed_; }
  /// Ends the exchange: the client has gone. done() ends it after the whole answer.
  void gone();
  void done();

 private:
  /// Runs an action in the HTTP thread unless the exchange is over.
  void post(std::function<void(Exchange&)> action);
  void over();

  Post to_http_;
  std::function<void()> wake_;
  std::size_t most_;
  std::optional<HttpReply> reply_;
  std::string pending_;
  bool begun_ = false;
  bool begin_taken_ = false;
  bool ended_ = false;
  bool overflowed_ = false;
  bool over_ = false;
  bool gone_ = false;
  std::function<void()> on_gone_;
  std::function<void()> on_silence_;
};

}  // namespace winnow::server
