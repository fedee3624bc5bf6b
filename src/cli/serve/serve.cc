// SPDX-License-Identifier: Apache-2.0
#include "cli/serve/serve.h"

#include <spdlog/fmt/fmt.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "base/format.h"
#include "base/log.h"
#include "base/memory.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/output.h"
#include "server/server.h"
#include "winnow/error.h"

namespace winnow::cli {

namespace {

/// Raises the limit of open files, since each connection is one.
void allow_many_files() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

/// Chooses the memory if the user gave none: most of the free memory. A part of it is for stored texts; requests' own
/// data may take another tenth.
void choose_memory(ServeOptions& options) {
  constexpr std::size_t kLeastForRequests = std::size_t{16} << 20;
  auto& scheduler = options.server.engine.scheduler;
  if (scheduler.memory == std::numeric_limits<std::size_t>::max()) scheduler.memory = available_memory() / 5 * 4;
  options.server.engine.request_memory = std::max(scheduler.memory / 10, kLeastForRequests);
  scheduler.texts = options.texts.with(options.texts.memory.value_or(scheduler.memory / 10));
  if (scheduler.texts.memory >= scheduler.memory)
    throw UsageError(fmt::format("--prefix-memory {} leaves nothing of --memory {} for requests: give a smaller one",
                                 format_bytes(scheduler.texts.memory), format_bytes(scheduler.memory)));
  scheduler.memory -= scheduler.texts.memory;
}

void warn_of_context(const ServeOptions& options, int context) {
  const int asked = options.server.defaults.context;
  if (asked > context)
    log().warn("--context {} is more than the model's context of {} tokens: answers in long conversations may be worse",
               asked, context);
}

}  // namespace

void serve_command(ServeOptions options) {
  for (const auto protocol : kProtocols) options.session.check(options.server.defaults.keep.with(protocol));
  const auto path = path_of(options.model);
  on_interrupt(OnInterrupt::ends);  // until the server listens
  allow_many_files();
  const auto model = Model::load(path, options.loading);
  options.server.defaults.generate.sampling = options.sampling.over(default_sampling(*model));
  choose_memory(options);
  warn_of_context(options, model->info().context);
  const auto say_where = [&options](const std::string& address) {
    const auto where = fmt::format(
        "listening on {0}, try: curl {0}/v1/chat/completions{1} -d "
        "'{{\"messages\": [{{\"role\": \"user\", \"content\": \"Hello\"}}]}}'",
        address, options.server.keys.empty() ? "" : " -H 'Authorization: Bearer KEY'");
    if (options.server.log == server::RequestLogging::json) log().info(where);
    if (options.server.log == server::RequestLogging::text) tell(where + "\n");
  };
  const auto give_up = [] {
    log().warn("a task did not stop in time and was abandoned");
    std::_Exit(kInterrupted);  // the stores are as after a kill
  };
  const auto ending = server::serve(model, options.session, options.server, say_where, give_up);
  if (ending == server::Ending::stopped) throw Interrupted("stopped");
}

}  // namespace winnow::cli
