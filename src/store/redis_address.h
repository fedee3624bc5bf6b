// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "store/byte_store.h"

namespace winnow::store {

/// Location of a Redis server, with credentials and database.
struct RedisAddress {
  enum class Transport : std::uint8_t { plain, tls };

  std::string name;      ///< name in messages: the address without the password
  std::string contents;  ///< Place::contents
  Transport transport = Transport::plain;
  std::string host = "127.0.0.1";
  int port = 6379;
  int database = 0;
  std::string user;         ///< empty: the server's default user
  std::string password;     ///< from the address, else from WINNOW_REDIS_PASSWORD; empty: none
  int answer_seconds = 60;  ///< a server that sends or takes nothing for so long is treated as gone

  /// `the documents in redis://localhost`
  std::string what() const { return "the " + contents + " in " + name; }

  /// Parses redis[s]://[[USER][:PASSWORD]@]HOST[:PORT][/DATABASE], with IPv6 addresses in brackets, and %XX for
  /// delimiters within a part. Throws UsageError, without the password.
  static RedisAddress parse(const Place& place);
};

inline constexpr const char* kRedisForm = "redis[s]://[[USER][:PASSWORD]@]HOST[:PORT][/DATABASE]";
inline constexpr const char* kPlainScheme = "redis://";
inline constexpr const char* kTlsScheme = "rediss://";

}  // namespace winnow::store
