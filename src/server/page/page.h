// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/http/message.h"

namespace winnow::server {

/// The page for watching the server: one file that loads nothing and connects to this server only.
HttpReply page_reply();

}  // namespace winnow::server
