// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/answers/surface.h"

namespace winnow::server {

/// Anthropic's Messages API: `/v1/messages` and `/v1/messages/count_tokens`.
Surface messages_surface();

}  // namespace winnow::server
