// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/engine_thread.h"
#include "server/http/limits.h"
#include "server/http/tls_files.h"
#include "server/keys.h"
#include "winnow/generate.h"
#include "winnow/questions.h"
#include "winnow/recommended.h"

namespace winnow::server {

/// Defaults of requests.
struct RequestDefaults {
  CacheChoice keep;
  Protocol protocol = Protocol::aware;
  GenerateOptions generate;
  std::optional<std::uint32_t> seed;               ///< none: a different one for each request
  ControlTokens control = ControlTokens::as_text;  ///< in messages of chats
  int context = 0;                                 ///< most tokens of a prompt and its answer; 0: the model's context
};

/// How finished requests are logged.
enum class RequestLogging : std::uint8_t { none, text, json };

struct ServerOptions {
  std::string alias;  ///< name of the model for clients; empty: its file's without .gguf
  std::string host = "127.0.0.1";
  int port = 8080;
  std::optional<TlsFiles> tls;       ///< none: plain HTTP
  std::vector<ApiKey> keys;          ///< empty: no key is needed
  std::vector<std::string> origins;  ///< web pages that may use the server, besides those of this machine; `*`: all
  std::vector<std::string> names;    ///< names of the server, besides `localhost` and `host`; `*`: all
  std::string documents;             ///< store of documents, as in DocumentStore; empty: none
  std::chrono::seconds drain_time{30};
  RequestLogging log = RequestLogging::text;
  HttpLimits http;
  EngineLimits engine;
  RequestDefaults defaults;
  std::string conversations;  ///< store of conversations: a folder, or the address of a Redis server; empty: none
};

}  // namespace winnow::server
