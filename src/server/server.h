// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "server/options.h"
#include "winnow/model.h"

namespace winnow::server {

/// How a server has ended.
enum class Ending : std::uint8_t { drained, stopped };

/// Serves a model until the process gets SIGINT or SIGTERM. After the first signal running requests end within the
/// drain time, the second one stops at once. `on_listening` gets the address (`http://127.0.0.1:8080`) when the port is
/// open. `give_up` ends the process where something goes on in spite of that (Signals). Throws UsageError, InputError
/// (the port is taken), MemoryError.
Ending serve(std::shared_ptr<const Model> model, const SessionOptions& session, const ServerOptions& options,
             const std::function<void(const std::string&)>& on_listening, std::function<void()> give_up);

}  // namespace winnow::server
