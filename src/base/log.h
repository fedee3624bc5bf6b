// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <spdlog/spdlog.h>

#include <cstdint>

namespace winnow {

enum class Verbosity : std::uint8_t { quiet, normal, verbose };

/// The logger: to stderr, in colour only on a terminal and without NO_COLOR in the environment.
spdlog::logger& log();

/// quiet: errors only; normal: also warnings and notes; verbose: everything, including messages of ggml and libllama.
void set_verbosity(Verbosity verbosity);

/// Prefixes each later line with the time, as in 2026-11-23T00:00:36.087+00:00.
void log_with_time();

/// Writes later lines as JSON objects: {"time": seconds since 1970, "level", "message"}.
void log_as_json();

}  // namespace winnow
