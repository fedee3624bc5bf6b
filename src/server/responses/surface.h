// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/answers/surface.h"

namespace winnow::server {

/// OpenAI's Responses API without stored responses: `/v1/responses`, with and without `/v1`.
Surface responses_surface();

}  // namespace winnow::server
