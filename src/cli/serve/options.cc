// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <memory>
#include <sstream>

#include "base/log.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/counts.h"
#include "cli/output.h"
#include "cli/serve/serve.h"
#include "cli/sizes.h"
#include "cli/texts.h"
#include "winnow/error.h"

namespace winnow::cli {

namespace {

/// Enough for most answers, and small enough to promise their memory to many requests at once.
constexpr int kAnswerTokens = 1024;

/// Options as CLI11 sets them, before they are checked.
struct RawServe {
  ServeOptions options;
  CommonArguments common;
  std::string protocol = "question-aware";
  std::string memory;
  TextArguments texts;
  std::string max_body = "32MiB";
  std::vector<std::string> keys;
  std::string key_file;
  std::string tls_cert;
  std::string tls_key;
  std::string log_format = "text";
  int max_itl = 50;
  int drain_timeout = 30;
};

void add_network_options(CLI::App& serve, RawServe& r) {
  auto& server = r.options.server;
  serve.add_option("--alias", server.alias, "name of the model for clients (default: its file's name without .gguf)");
  serve.add_option("--host", server.host, "address to listen on (default: 127.0.0.1, for this machine only)");
  serve.add_option("--port", server.port, "port (default: 8080; 0: any free one)")->check(whole_number(0, 65535));
  serve.add_option("--api-key", r.keys, "key that clients must send; may be given several times")
      ->envname("WINNOW_API_KEY");
  serve.add_option("--api-key-file", r.key_file, "file with a key or NAME:KEY on each line; the log shows the name");
  serve.add_option("--tls-cert", r.tls_cert, "use TLS with the certificate in this file (PEM, with its chain)");
  serve.add_option("--tls-key", r.tls_key, "key of that certificate (PEM, without a password)");
  serve.add_option(
      "--cors-origin", server.origins,
      "web pages that may use the server besides those of this machine: https://chat.example, or * for all");
  serve.add_option("--allowed-host", server.names,
                   "host name that clients may use besides localhost, --host and addresses: chat.example, or * for all "
                   "(default: no other)");
  serve.add_option("--max-body", r.max_body, "largest body of a request");
  serve.add_option("--max-connections", server.http.connections, "connections at the same time")->check(counts_from(1));
}

void add_log_options(CLI::App& serve, RawServe& r) {
  serve.add_option("--log-format", r.log_format, "format of the line for each request on stderr")
      ->check(CLI::IsMember({"text", "json"}));
}

void add_store_options(CLI::App& serve, RawServe& r) {
  serve.add_option("--documents", r.options.server.documents, fmt::format("store of documents: {}", kStoreForm));
  serve.add_option("--sessions", r.options.server.conversations, fmt::format("store of sessions: {}", kStoreForm));
}

void add_load_options(CLI::App& serve, RawServe& r) {
  auto& engine = r.options.server.engine;
  serve.add_option("--memory", r.memory,
                   "memory that all requests may use together, without the weights, such as 4GiB (default: 80 % of the "
                   "free memory)");
  add_text_options(serve, r.texts,
                   "the part of --memory that keeps texts for later requests: 512MiB (default: a tenth; 0: none)");
  serve.add_option("--parallel", engine.scheduler.parallel, "requests that run at the same time; others wait")
      ->check(counts_from(1));
  serve.add_option("--max-queue-requests", engine.waiting, "requests that may wait")->check(counts_from(0));
  serve
      .add_option("--max-queue-tokens", engine.waiting_tokens,
                  "tokens that the prompts of waiting requests may have together (default: no limit)")
      ->check(counts_from(1));
  serve.add_option("--max-itl", r.max_itl, "most milliseconds between two tokens of an answer while prompts are read")
      ->check(counts_from(0));
  serve
      .add_option("--drain-timeout", r.drain_timeout,
                  "seconds for which running requests may continue after SIGTERM or Ctrl-C")
      ->check(counts_from(0));
}

void add_request_options(CLI::App& serve, RawServe& r) {
  serve
      .add_option("--protocol", r.protocol,
                  "compress after (question-aware) or before (question-agnostic) the last question is seen")
      ->check(CLI::IsMember({"question-aware", "question-agnostic"}));
  serve
      .add_option("--context", r.options.server.defaults.context,
                  "most tokens of a prompt and its answer (default: the model's context)")
      ->check(counts_from(1));
}

/// Parses `NAME:KEY`, where NAME consists of letters, digits and -_., or a key without a name.
server::ApiKey key_in(const std::string& line) {
  const auto colon = line.find(':');
  const auto is_of_name = [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.'; };
  if (colon == std::string::npos || colon == 0 ||
      !std::all_of(line.begin(), line.begin() + static_cast<std::ptrdiff_t>(colon), is_of_name))
    return {"", line};
  return {line.substr(0, colon), line.substr(colon + 1)};
}

std::vector<server::ApiKey> keys_in(const std::string& path) {
  std::vector<server::ApiKey> out;
  std::istringstream lines(read_file(path));
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty() && line.front() != '#') out.push_back(key_in(line));
    if (!out.empty() && out.back().key.empty())
      throw InputError(fmt::format("{} has no key for {}: write NAME:KEY", path, out.back().name));
  }
  if (out.empty()) throw InputError(fmt::format("{} has no keys: write one on each line", path));
  return out;
}

void check_keys(RawServe& r) {
  auto& keys = r.options.server.keys;
  for (const auto& key : r.keys) {
    if (key.empty()) throw UsageError("--api-key is empty, so everybody could use the server: give a key");
    keys.push_back({"", key});
  }
  const auto more = r.key_file.empty() ? std::vector<server::ApiKey>() : keys_in(r.key_file);
  keys.insert(keys.end(), more.begin(), more.end());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (keys[i].name.empty()) keys[i].name = fmt::format("key-{}", i + 1);
  }
}

std::optional<server::TlsFiles> tls_of(const RawServe& r) {
  if (r.tls_cert.empty() != r.tls_key.empty()) throw UsageError("--tls-cert and --tls-key need each other: give both");
  if (r.tls_cert.empty()) return std::nullopt;
  return server::TlsFiles{r.tls_cert, r.tls_key};
}

/// Parses and checks all options before a model is loaded.
ServeOptions checked_serve(RawServe& r) {
  ServeOptions& o = r.options;
  r.common.protocol = r.protocol == "question-aware" ? Protocol::aware : Protocol::agnostic;
  check_common(r.common, o);
  check_keys(r);
  o.server.tls = tls_of(r);
  auto& server = o.server;
  if (!r.memory.empty()) server.engine.scheduler.memory = size_of("--memory", r.memory);
  o.texts = texts_of(r.texts);
  server.http.body_bytes = size_of("--max-body", r.max_body);
  server.engine.scheduler.max_itl = std::chrono::milliseconds(r.max_itl);
  server.engine.scheduler.check();
  server.log = o.quiet                  ? server::RequestLogging::none
               : r.log_format == "json" ? server::RequestLogging::json
                                        : server::RequestLogging::text;
  if (server.log == server::RequestLogging::json) log_as_json();
  if (server.log == server::RequestLogging::text) log_with_time();
  server.drain_time = std::chrono::seconds(r.drain_timeout);
  server.defaults.keep = choice_of(r.common);
  server.defaults.protocol = r.common.protocol;
  o.sampling = sampling_of(r.common, o);
  server.defaults.generate = o.generate;
  server.defaults.control = o.prompt.control;
  server.defaults.seed = o.sampling.seed;
  return o;
}

}  // namespace

void add_serve(CLI::App& app) {
  auto* const serve = app.add_subcommand("serve", "serve a model over HTTP, with OpenAI's and Anthropic's APIs");
  const auto raw = std::make_shared<RawServe>();
  raw->options.generate.max_tokens = kAnswerTokens;
  raw->options.generate.sampling = usual_sampling();
  add_serving_options(*serve, raw->common, raw->options);
  say_model_samples(raw->common);
  add_request_options(*serve, *raw);
  add_network_options(*serve, *raw);
  add_log_options(*serve, *raw);
  add_load_options(*serve, *raw);
  add_store_options(*serve, *raw);
  serve->footer(
      "The base URL of clients is http://127.0.0.1:8080/v1 for OpenAI's API, http://127.0.0.1:8080 for Anthropic's.\n"
      "A request may override these options. It may choose its own method and budget:\n"
      "  {\"messages\": [...], \"winnow\": {\"kv\": \"snapkv\", \"budget\": \"10%\"}}\n"
      "Example:\n  winnow serve -m model.gguf --kv ada-snapkv --budget 512 --memory 4GiB");
  serve->callback([raw] { serve_command(checked_serve(*raw)); });
}

}  // namespace winnow::cli
