// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hiredis/hiredis.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "store/redis_address.h"

namespace winnow::store {

/// Byte stream to a server, plain or with TLS. hiredis makes the connection; since it supports TLS only from version
/// 1.0 on, reading and writing are done here. All functions throw InputError if the server is gone or does not answer
/// in time.
class RedisStream {
 public:
  explicit RedisStream(const RedisAddress& address);
  ~RedisStream();

  void write(std::string_view bytes);
  /// Waits for at least one byte.
  std::size_t read(std::span<char> to);
  /// True if there is something to read, or the server has closed the connection.
  bool has_input() const;

 private:
  class Transport;
  class Plain;
  class Tls;
  struct Free {
    void operator()(redisContext* context) const { redisFree(context); }
  };

  std::unique_ptr<redisContext, Free> socket_;
  std::unique_ptr<Transport> transport_;
};

}  // namespace winnow::store
