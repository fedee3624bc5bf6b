// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/options.h"
#include "cli/texts.h"
#include "server/options.h"
#include "winnow/sampling.h"

namespace winnow::cli {

/// Options of `winnow serve`, after all checks that need no model.
struct ServeOptions : CommonOptions {
  SamplingChoice sampling;  ///< chosen options; the others are the model's
  server::ServerOptions server;
  TextChoice texts;  ///< their memory is a part of the scheduler's
};

/// `winnow serve`: answers requests over HTTP until a signal ends it. Throws winnow::Error; Interrupted after the
/// second signal.
void serve_command(ServeOptions options);

}  // namespace winnow::cli
