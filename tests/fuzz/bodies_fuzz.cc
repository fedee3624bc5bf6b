// SPDX-License-Identifier: Apache-2.0
// A path in the first line, then any bytes as the body of a request. They are processed as in the server; the answer
// must be JSON, a stream of JSON, or an error status that does not blame the server.
#include <boost/asio/executor_work_guard.hpp>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "fuzz/server_site.h"

namespace {

using winnow::server::HttpReply;

/// Collects an answer and stops the loop when the answer is complete.
class Collected : public winnow::server::Responder {
 public:
  explicit Collected(boost::asio::io_context& loop) : loop_(loop) {}

  void send(HttpReply reply) override {
    boost::asio::post(loop_, [this, reply = std::move(reply)] {
      reply_ = reply;
      loop_.stop();
    });
  }
  void begin() override {}
  void write(std::string bytes) override {
    boost::asio::post(loop_, [this, bytes = std::move(bytes)] { stream_ += bytes; });
  }
  void end() override {
    boost::asio::post(loop_, [this] { loop_.stop(); });
  }
  void on_gone(std::function<void()> /*action*/) override {}
  void on_silence(std::function<void()> /*action*/) override {}

  const HttpReply& reply() const { return reply_; }
  std::string_view stream() const { return stream_; }

 private:
  boost::asio::io_context& loop_;
  HttpReply reply_;
  std::string stream_;
};

void check_event(std::string_view event) {
  constexpr std::string_view kName = "event: ";
  constexpr std::string_view kData = "data: ";
  if (event.starts_with(kName)) event.remove_prefix(std::min(event.find('\n'), event.size() - 1) + 1);
  if (!event.starts_with(kData)) std::abort();
  event.remove_prefix(kData.size());
  if (event != "[DONE]" && !nlohmann::json::accept(event)) std::abort();
}

void check_stream(std::string_view stream) {
  constexpr std::string_view kEnd = "\n\n";
  while (!stream.empty()) {
    const auto end = stream.find(kEnd);
    if (end == std::string_view::npos) std::abort();
    check_event(stream.substr(0, end));
    stream.remove_prefix(end + kEnd.size());
  }
}

void check_reply(const HttpReply& reply) {
  if (reply.type == "text/event-stream") return check_stream(reply.body);
  const bool is_known = reply.status == 200 || reply.status == 400 || reply.status == 429 || reply.status == 501;
  if (!is_known || !nlohmann::json::accept(reply.body)) std::abort();
}

std::string path_of(std::string_view line) {
  for (const char* const path :
       {"/v1/completions", "/v1/chat/completions", "/v1/messages", "/v1/messages/count_tokens", "/v1/responses",
        "/v1/embeddings", "/infill", "/tokenize", "/detokenize", "/apply-template"}) {
    if (line == path) return path;
  }
  return "/v1/chat/completions";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  static winnow::test::FuzzedServer server;
  static const auto bodies = std::make_shared<winnow::server::ByteAccount>(std::size_t{1} << 20);
  const std::string_view input(data, size);
  const auto line = std::min(input.find('\n'), size);
  const auto answer = std::make_shared<Collected>(server.loop());
  const auto guard = boost::asio::make_work_guard(server.loop());
  server.site().handle({"POST", path_of(input.substr(0, line)), {}},
                       {std::string(input.substr(std::min(line + 1, size))), winnow::server::ByteShare(bodies)},
                       answer);
  server.loop().restart();
  server.loop().run();
  server.site().finished();
  if (answer->stream().empty()) {
    check_reply(answer->reply());
  } else {
    check_stream(answer->stream());
  }
  return 0;
}
