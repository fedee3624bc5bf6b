// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "server/engine_thread.h"
#include "server/http/message.h"
#include "server/options.h"
#include "winnow/model.h"

namespace winnow::server {

/// Whether the server accepts requests.
enum class Health : std::uint8_t { ok, draining };

/// The model as clients see it.
struct ServedModel {
  ServedModel(std::shared_ptr<const Model> model, const ServerOptions& options);

  std::shared_ptr<const Model> model;
  std::string name;      ///< the option's, or else the file's without `.gguf`
  int context;           ///< most tokens of a prompt and its answer
  std::int64_t started;  ///< seconds since 1970
};

/// Replies of the routes about the server.
HttpReply health_reply(Health health);
HttpReply models_reply(const ServedModel& served);
/// Throws ApiError if `name` is not the model's.
HttpReply model_reply(const ServedModel& served, const std::string& name);
HttpReply slots_reply(const EngineThread& engine);
HttpReply props_reply(const ServedModel& served, const ServerOptions& options, int threads);

}  // namespace winnow::server
