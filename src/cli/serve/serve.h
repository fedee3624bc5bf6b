// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>

#include "cli/options.h"
#include "server/options.h"
#include "winnow/sampling.h"

namespace winnow::cli {

/// The options of `winnow serve`, after all checks that need no model.
struct ServeOptions : CommonOptions {
  SamplingChoice sampling;  ///< the rest is the model's
  server::ServerOptions server;
  std::optional<std::size_t> prefix_memory;  ///< of the scheduler's memory
};

/// `winnow serve`: answers requests over HTTP until it is told to end. Throws winnow::Error; Interrupted when it was
/// told twice.
void serve_command(ServeOptions options);

}  // namespace winnow::cli
