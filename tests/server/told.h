// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "server/http/message.h"

namespace winnow::server {

/// Collects the bytes sent to a client.
class Told : public Responder {
 public:
  void send(HttpReply reply) override { whole = std::move(reply); }
  void begin() override { streams = true; }
  void write(std::string bytes) override { stream += bytes; }
  void end() override { ended = true; }
  void on_gone(std::function<void()> /*action*/) override {}
  void on_silence(std::function<void()> /*action*/) override {}

  HttpReply whole;
  std::string stream;
  bool streams = false;
  bool ended = false;
};

/// The names of the events of a stream, in order.
inline std::string event_names(const std::string& stream) {
  std::string out;
  constexpr std::string_view kName = "event: ";
  for (auto at = stream.find(kName); at != std::string::npos; at = stream.find(kName, at + 1))
    out += (out.empty() ? "" : " ") + stream.substr(at + kName.size(), stream.find('\n', at) - at - kName.size());
  return out;
}

}  // namespace winnow::server
