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

/// What a server may answer to a command.
enum class ReplyKind : std::uint8_t { status, number, text, text_or_nothing, list, list_or_nothing };

/// The bytes of a reply that is a string; empty for one that says there is nothing.
std::string_view text_of(const redisReply& reply);

/// One connection, for one thread at a time. All throw InputError when the server is gone, refuses, does not answer in
/// time or answers something else than what was expected; the connection is then of no more use.
class RedisConnection {
 public:
  explicit RedisConnection(const RedisAddress& address);

  /// Sends a command with its arguments' bytes and waits for the answer.
  RedisReply ask(ReplyKind expected, std::initializer_list<std::string_view> words) {
    send(words);
    return next(expected);
  }
  /// Sends without waiting; next() gives the answers in order.
  void send(std::initializer_list<std::string_view> words);
  RedisReply next(ReplyKind expected);

  /// Whether the server has closed it while nobody was waiting: then there is something to read.
  bool was_closed() const { return stream_.has_input(); }

  /// Throws the InputError for an answer that cannot be right: one sentence with `why`.
  [[noreturn]] void fail(const std::string& why) const;
  /// Throws InputError unless an answer is the expected one.
  void check(const redisReply& reply, ReplyKind expected) const;

 private:
  struct Free {
    void operator()(redisReader* reader) const { redisReaderFree(reader); }
  };
  void log_in(const RedisAddress& address);
  RedisReply receive();
  void flush();

  std::string name_;
  std::string what_;  ///< of that address
  RedisStream stream_;
  std::unique_ptr<redisReader, Free> reader_;
  std::string unsent_;
  std::vector<char> received_;
};

/// Connections that nobody uses at the moment.
class RedisPool {
 public:
  explicit RedisPool(RedisAddress address) : address_(std::move(address)) {}

  /// A connection that is returned to the pool at the end, if done() was called. Otherwise it is closed.
  class Use {
   public:
    explicit Use(RedisPool& pool) : pool_(pool), connection_(pool.take()) {}
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    ~Use() {
      if (done_) pool_.put(std::move(connection_));
    }
    RedisConnection& connection() { return *connection_; }
    /// All answers have been read, nothing is watched.
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
