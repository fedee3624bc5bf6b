// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/http/message.h"
#include "server/kept/finished.h"
#include "winnow/model.h"

namespace winnow::server {

/// Reply to `GET /winnow/requests/ID/kept`.
HttpReply kept_reply(const Model& model, const FinishedRequest& request);

}  // namespace winnow::server
