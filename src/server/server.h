// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "server/options.h"
#include "winnow/model.h"

namespace winnow::server {

/// How a server ended.
enum class Ending : std::uint8_t { drained, stopped };

/// Serves a model until the process gets SIGINT or SIGTERM. After the first signal, running requests may finish within
/// the drain time; the second one stops at once. Calls `on_listening` with the address (`http://127.0.0.1:8080`) when
/// the port is open. `give_up` ends the process if something still runs after that (Signals). Throws UsageError,
/// InputError (the port is taken), MemoryError.
Ending serve(std::shared_ptr<const Model> model, const SessionOptions& session, const ServerOptions& options,
             const std::function<void(const std::string&)>& on_listening, std::function<void()> give_up);

}  // namespace winnow::server
