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
  std::optional<std::uint32_t> seed;               ///< none: another one for each request
  ControlTokens control = ControlTokens::as_text;  ///< in the messages of chats
  int context = 0;                                 ///< most tokens of a prompt and its answer; 0: the model's context
};

/// How requests that have ended are logged.
enum class RequestLogging : std::uint8_t { none, text, json };

struct ServerOptions {
  std::string alias;  ///< what clients call the model; empty: its file's name without .gguf
  std::string host = "127.0.0.1";
  int port = 8080;
  std::optional<TlsFiles> tls;       ///< none: plain HTTP
  std::vector<ApiKey> keys;          ///< empty: everybody may use the server
  std::vector<std::string> origins;  ///< of web pages that may use it, besides those of this machine; `*`: all
  std::vector<std::string> names;    ///< by which it may be called, besides `localhost` and `host`; `*`: all
  std::string documents;             ///< where they are kept, as DocumentStore has it; empty: nowhere
  std::chrono::seconds drain_time{30};
  RequestLogging log = RequestLogging::text;
  HttpLimits http;
  EngineLimits engine;
  RequestDefaults defaults;
  std::string sessions;  ///< where they are kept: a folder, or the address of a Redis server; empty: nowhere
};

}  // namespace winnow::server
