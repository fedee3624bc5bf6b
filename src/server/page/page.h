// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/http/message.h"

namespace winnow::server {

/// The page to watch the server: one file, which may load nothing, and speak to this server alone.
HttpReply page_reply();

}  // namespace winnow::server
