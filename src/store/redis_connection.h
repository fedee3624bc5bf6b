// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hiredis/hiredis.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/redis_address.h"
#include "store/redis_stream.h"

namespace winnow::store {

struct FreeReply {
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};
using RedisReply = std::unique_ptr<redisReply, FreeReply>;

/// Expected type of a server's reply.
enum class ReplyKind : std::uint8_t { status, number, text, text_or_nothing, list, list_or_nothing };

/// The bytes of a string reply; empty for a nil reply.
std::string_view text_of(const redisReply& reply);

/// A connection, for one thread at a time. All functions throw InputError if the server is gone, refuses, does not
/// answer in time or sends an unexpected reply; the connection must not be used afterwards.
class RedisConnection {
 public:
  explicit RedisConnection(const RedisAddress& address);

  /// Sends a command with its arguments, and waits for the reply.
  RedisReply ask(ReplyKind expected, std::initializer_list<std::string_view> words) {
    send(words);
    return next(expected);
  }
  /// Sends a command without waiting; next() returns the replies in order.
  void send(std::initializer_list<std::string_view> words);
  RedisReply next(ReplyKind expected);

  /// True if the server has closed the idle connection, which shows as input.
  bool was_closed() const { return stream_.has_input(); }

  /// Throws InputError with `why`, for an invalid reply.
  [[noreturn]] void fail(const std::string& why) const;
  /// Throws InputError unless a reply has the expected type.
  void check(const redisReply& reply, ReplyKind expected) const;

 private:
  struct Free {
    void operator()(redisReader* reader) const { redisReaderFree(reader); }
  };
  void log_in(const RedisAddress& address);
  RedisReply receive();
  void flush();

  std::string name_;
  std::string what_;  ///< RedisAddress::what()
  RedisStream stream_;
  std::unique_ptr<redisReader, Free> reader_;
  std::string unsent_;
  std::vector<char> received_;
};

/// Pool of idle connections.
class RedisPool {
 public:
  explicit RedisPool(RedisAddress address) : address_(std::move(address)) {}

  /// A connection that goes back to the pool if done() was called, and is closed otherwise.
  class Use {
   public:
    explicit Use(RedisPool& pool) : pool_(pool), connection_(pool.take()) {}
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    ~Use() {
      if (done_) pool_.put(std::move(connection_));
    }
    RedisConnection& connection() { return *connection_; }
    /// REQUIRES: all replies have been read, and no key is watched.
    void done() { done_ = true; }

   private:
    RedisPool& pool_;
    std::unique_ptr<RedisConnection> connection_;
    bool done_ = false;
  };

  const RedisAddress& address() const { return address_; }

 private:
  std::unique_ptr<RedisConnection> take();
  void put(std::unique_ptr<RedisConnection> connection);

  RedisAddress address_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<RedisConnection>> idle_;
};

}  // namespace winnow::store
