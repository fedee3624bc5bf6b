// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace winnow::store {

/// Where a Redis server is, and who asks.
struct RedisAddress {
  enum class Transport : std::uint8_t { plain, tls };

  std::string name;  ///< what messages call it: the address without the password
  Transport transport = Transport::plain;
  std::string host = "127.0.0.1";
  int port = 6379;
  int database = 0;
  std::string user;      ///< empty: the server's default one
  std::string password;  ///< empty: none; WINNOW_REDIS_PASSWORD where the address has none

  /// Reads redis[s]://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE], with an IPv6 address in brackets and %XX for what would
  /// end a part. Throws UsageError, without the password.
  static RedisAddress parse(const std::string& url);
};

inline constexpr const char* kRedisForm = "redis[s]://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE]";
inline constexpr const char* kPlainScheme = "redis://";
inline constexpr const char* kTlsScheme = "rediss://";

}  // namespace winnow::store
