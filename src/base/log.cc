// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_color_sinks.h>

#include <cstdlib>
#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "base/printable.h"

namespace winnow {

namespace {

constexpr const char* kLine = "%^%l%$: %*";

/// Makes log messages printable, since they may contain text from outside.
class PrintableText : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm& /*time*/, spdlog::memory_buf_t& out) override {
    const std::string text = printable({message.payload.data(), message.payload.size()});
    out.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<PrintableText>(); }
};

class JsonText : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm& /*time*/, spdlog::memory_buf_t& out) override {
    const nlohmann::json json = std::string(message.payload.data(), message.payload.size());
    const std::string text = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    out.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<JsonText>(); }
};

std::unique_ptr<spdlog::formatter> formatter(const std::string& pattern) {
  auto out = std::make_unique<spdlog::pattern_formatter>();
  out->add_flag<PrintableText>('*').set_pattern(pattern);
  return out;
}

}  // namespace

spdlog::logger& log() {
  static const auto logger = [] {
    const bool plain = std::getenv("NO_COLOR") != nullptr;
    auto sink = std::make_shared<spdlog::sinks::stderr_color_sink_mt>(plain ? spdlog::color_mode::never
                                                                            : spdlog::color_mode::automatic);
    auto out = std::make_shared<spdlog::logger>("winnow", std::move(sink));
    out->set_formatter(formatter(kLine));
    return out;
  }();
  return *logger;
}

void log_with_time() { log().set_formatter(formatter(std::string("%Y-%m-%dT%H:%M:%S.%e%z ") + kLine)); }

void log_as_json() {
  auto json = std::make_unique<spdlog::pattern_formatter>();
  json->add_flag<JsonText>('*').set_pattern(R"({"time":%E.%e,"level":"%l","message":%*})");
  log().set_formatter(std::move(json));
}

void set_verbosity(Verbosity verbosity) {
  switch (verbosity) {
    case Verbosity::quiet:
      log().set_level(spdlog::level::err);
      break;
    case Verbosity::normal:
      log().set_level(spdlog::level::info);
      break;
    case Verbosity::verbose:
      log().set_level(spdlog::level::debug);
      break;
  }
}

}  // namespace winnow
