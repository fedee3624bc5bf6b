// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "server/engine_thread.h"
#include "server/http/message.h"
#include "server/options.h"
#include "winnow/model.h"

namespace winnow::server {

/// Whether the server takes requests.
enum class Health : std::uint8_t { ok, draining };

/// What the model is called: its file's name without `.gguf`.
std::string name_of(const Model& model);

/// What the routes about the server answer, at once.
HttpReply health_reply(Health health);
HttpReply models_reply(const Model& model, int context, std::int64_t started);
HttpReply slots_reply(const EngineThread& engine);
HttpReply props_reply(const Model& model, const ServerOptions& options, int context, int threads);

}  // namespace winnow::server
