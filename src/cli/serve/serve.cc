// SPDX-License-Identifier: Apache-2.0
#include "cli/serve/serve.h"

#include <spdlog/fmt/fmt.h>
#include <sys/resource.h>

#include <limits>

#include "base/memory.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "server/server.h"
#include "winnow/error.h"

namespace winnow::cli {

namespace {

/// Each connection is an open file.
void allow_many_files() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

/// Where no memory is given: most of what is there, so that the machine has some left.
void choose_memory(server::ServerOptions& options) {
  auto& memory = options.engine.scheduler.memory;
  if (memory == std::numeric_limits<std::size_t>::max()) memory = available_memory() / 5 * 4;
}

}  // namespace

void serve_command(ServeOptions options) {
  on_interrupt(OnInterrupt::ends);  // until the server listens
  allow_many_files();
  const auto model = Model::load(options.model, options.loading);
  choose_memory(options.server);
  const auto say_where = [&options](const std::string& address) {
    if (options.quiet) return;
    tell(
        fmt::format("listening on http://{0}, try: curl http://{0}/v1/chat/completions -d "
                    "'{{\"messages\": [{{\"role\": \"user\", \"content\": \"Hello\"}}]}}'\n",
                    address));
  };
  const auto ending = server::serve(model, options.session, options.server, say_where);
  if (ending == server::Ending::stopped) throw Interrupted("stopped");
}

}  // namespace winnow::cli
