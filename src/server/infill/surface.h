// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/answers/surface.h"

namespace winnow::server {

/// llama.cpp's /infill: fills in the text between two texts.
Surface infill_surface();

}  // namespace winnow::server
