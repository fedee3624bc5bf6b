#pragma once

#include <hiredis/hiredis.h>
#include <openssl/ssl.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "store/redis_address.h"

namespace winnow::store {

/// The bytes to a server and from it, as they are or by TLS. hiredis connects; it knows TLS from version 1.0 on only,
/// so that reading and writing are here. All throw InputError when the server is gone or does not answer in time.
class RedisStream {
 public:
  explicit RedisStream(const RedisAddress& address);

  void write(std::string_view bytes);
  /// Waits for some bytes, at least one.
  std::size_t read(std::span<char> to);
  /// Whether there is something to read, or the server has closed it.
  bool has_input() const;

 private:
  struct Free {
    void operator()(redisContext* context) const { redisFree(context); }
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
    void operator()(SSL* tls) const { SSL_free(tls); }
  };
  void begin_tls(const std::string& host);
  [[noreturn]] void fail(const std::string& why) const;
  [[noreturn]] void fail_tls(int result) const;

  std::string name_;
  std::unique_ptr<redisContext, Free> socket_;
  std::unique_ptr<SSL_CTX, Free> context_;
  std::unique_ptr<SSL, Free> tls_;  ///< nothing: the bytes go as they are
};

}  // namespace winnow::store
