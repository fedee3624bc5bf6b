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

/// The bytes to a server and from it, as they are or by TLS. hiredis connects; it knows TLS from version 1.0 on only,
/// so that reading and writing are here. All throw InputError when the server is gone or does not answer in time.
class RedisStream {
 public:
  explicit RedisStream(const RedisAddress& address);
  ~RedisStream();

  void write(std::string_view bytes);
  /// Waits for some bytes, at least one.
  std::size_t read(std::span<char> to);
  /// Whether there is something to read, or the server has closed it.
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
