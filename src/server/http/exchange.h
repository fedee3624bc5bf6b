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

/// A request's answer on its way from a handler (any thread) to its connection (the thread for HTTP).
class Exchange : public Responder, public std::enable_shared_from_this<Exchange> {
 public:
  /// `wake` is called in the thread for HTTP when there is more to send; `most` bytes may wait for the reader.
  Exchange(Post to_http, std::function<void()> wake, std::size_t most);

  void send(HttpReply reply) override;
  void begin() override;
  void write(std::string bytes) override;
  void end() override;
  void on_gone(std::function<void()> action) override;
  void on_silence(std::function<void()> action) override;

  // The rest is for the connection, in the thread for HTTP.

  /// Whether there is anything to do for the connection.
  bool is_ready() const { return reply_ || !pending_.empty() || ended_ || overflowed_ || (begun_ && !begin_taken_); }
  std::optional<HttpReply> take_reply();
  /// Once, when a stream has begun.
  bool take_begin();
  std::string take_bytes();
  bool is_ended() const { return ended_; }
  /// Lets the handler say something.
  void break_silence() {
    if (on_silence_) on_silence_();
  }
  bool has_sent_all() const { return pending_.empty(); }
  bool is_overflowed() const { return overflowed_; }
  /// Ends the exchange: the client has gone, or has the whole answer.
  void gone();
  void done();

 private:
  /// Does something in the thread for HTTP, while the exchange is not over.
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
