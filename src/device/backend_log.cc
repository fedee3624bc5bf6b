// SPDX-License-Identifier: Apache-2.0
#include "device/backend_log.h"

#include <llama.h>

#include <string_view>

#include "base/log.h"

namespace winnow::device {

void forward_backend_log() {
  llama_log_set(
      [](ggml_log_level level, const char* text, void* /*user*/) {
        std::string_view line(text);
        while (!line.empty() && line.back() == '\n') line.remove_suffix(1);
        if (!line.empty() && level != GGML_LOG_LEVEL_CONT) log().debug("{}", line);
      },
      nullptr);
}

}  // namespace winnow::device
