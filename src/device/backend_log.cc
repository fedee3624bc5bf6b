// SPDX-License-Identifier: Apache-2.0
#include "device/backend_log.h"

#include <llama.h>

#include <mutex>
#include <string_view>

#include "base/log.h"

namespace winnow::device {

namespace {

struct LastError {
  std::mutex mutex;
  std::string text;
};

LastError& last_error() {
  static LastError one;
  return one;
}

}  // namespace

void forward_backend_log() {
  llama_log_set(
      [](ggml_log_level level, const char* text, void* /*user*/) {
        std::string_view line(text);
        while (!line.empty() && line.back() == '\n') line.remove_suffix(1);
        if (line.empty() || level == GGML_LOG_LEVEL_CONT) return;
        log().debug("{}", line);
        if (level != GGML_LOG_LEVEL_ERROR) return;
        const std::scoped_lock lock(last_error().mutex);
        last_error().text = line;
      },
      nullptr);
}

std::string last_backend_error() {
  const std::scoped_lock lock(last_error().mutex);
  return last_error().text;
}

}  // namespace winnow::device
