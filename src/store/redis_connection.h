#pragma once

#include <hiredis/hiredis.h>

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace winnow::store {

/// host, port and database of redis://HOST[:PORT][/DATABASE].
struct RedisAddress {
  std::string url;
  std::string host = "127.0.0.1";
  int port = 6379;
  int database = 0;

  /// Throws UsageError.
  static RedisAddress parse(const std::string& url);
};

struct FreeReply {
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};
using RedisReply = std::unique_ptr<redisReply, FreeReply>;

/// The bytes of a reply that is a string; empty for one that says there is nothing.
std::string_view text_of(const redisReply& reply);

/// One connection, for one thread at a time. All throw InputError when the server is gone, refuses or does not answer
/// in time; the connection is then of no more use.
class RedisConnection {
 public:
  explicit RedisConnection(const RedisAddress& address);

  /// Sends a command with its arguments' bytes and waits for the answer.
  RedisReply ask(std::span<const std::string_view> words);
  RedisReply ask(std::initializer_list<std::string_view> words) { return ask(std::span(words.begin(), words.size())); }
  /// Sends without waiting; next() gives the answers in order.
  void send(std::span<const std::string_view> words);
  void send(std::initializer_list<std::string_view> words) { send(std::span(words.begin(), words.size())); }
  RedisReply next();

  bool is_broken() const { return context_->err != 0; }
  /// Whether the server has closed it while nobody was waiting: then there is something to read.
  bool was_closed() const;

 private:
  struct Free {
    void operator()(redisContext* context) const { redisFree(context); }
  };
  [[noreturn]] void fail(const std::string& why) const;

  std::string url_;
  std::unique_ptr<redisContext, Free> context_;
};

/// Connections that nobody uses at the moment.
class RedisPool {
 public:
  explicit RedisPool(RedisAddress address) : address_(std::move(address)) {}

  /// A connection that goes back to the pool at the end, unless it broke or was left in the middle of something.
  class Use {
   public:
    explicit Use(RedisPool& pool) : pool_(pool), connection_(pool.take()) {}
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    ~Use() {
      if (done_ && !connection_->is_broken()) pool_.put(std::move(connection_));
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
