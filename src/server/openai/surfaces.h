// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/answers/surface.h"

namespace winnow::server {

/// OpenAI's chats and completions, with and without `/v1`.
Surface chat_surface();
Surface completion_surface();

}  // namespace winnow::server
