// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "store/byte_store.h"

namespace winnow::store {

/// Where a Redis server is, who asks, and for what.
struct RedisAddress {
  enum class Transport : std::uint8_t { plain, tls };

  std::string name;      ///< what messages call it: the address without the password
  std::string contents;  ///< what is kept there, as Place has it
  Transport transport = Transport::plain;
  std::string host = "127.0.0.1";
  int port = 6379;
  int database = 0;
  std::string user;      ///< empty: the server's default one
  std::string password;  ///< empty: none; WINNOW_REDIS_PASSWORD where the address has none

  /// `the documents in redis://localhost`
  std::string what() const { return "the " + contents + " in " + name; }

  /// Reads redis[s]://[[USER][:PASSWORD]@]HOST[:PORT][/DATABASE], with an IPv6 address in brackets and %XX for what
  /// would end a part. Throws UsageError, without the password.
  static RedisAddress parse(const Place& place);
};

inline constexpr const char* kRedisForm = "redis[s]://[[USER][:PASSWORD]@]HOST[:PORT][/DATABASE]";
inline constexpr const char* kPlainScheme = "redis://";
inline constexpr const char* kTlsScheme = "rediss://";

}  // namespace winnow::store
