#include "base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>

#include <cstdlib>
#include <memory>

namespace winnow {

spdlog::logger& log() {
  static const auto logger = [] {
    const bool plain = std::getenv("NO_COLOR") != nullptr;
    auto sink = std::make_shared<spdlog::sinks::stderr_color_sink_mt>(plain ? spdlog::color_mode::never
                                                                            : spdlog::color_mode::automatic);
    auto out = std::make_shared<spdlog::logger>("winnow", std::move(sink));
    out->set_pattern("%^%l%$: %v");
    return out;
  }();
  return *logger;
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
