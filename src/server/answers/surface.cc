// SPDX-License-Identifier: Apache-2.0
#include "server/answers/surface.h"

#include <algorithm>

#include "server/infill/surface.h"
#include "server/messages/surface.h"
#include "server/openai/errors.h"
#include "server/openai/surfaces.h"
#include "server/responses/surface.h"

namespace winnow::server {

const std::vector<Surface>& surfaces() {
  static const std::vector<Surface> kSurfaces{
      chat_surface(), completion_surface(), messages_surface(), responses_surface(), infill_surface(),
  };
  return kSurfaces;
}

HttpReply error_under(const std::string& path, const std::exception_ptr& error) {
  const auto is_above = [&path](const std::string& own) { return path == own || path.starts_with(own + "/"); };
  for (const auto& surface : surfaces()) {
    if (std::ranges::any_of(surface.paths, is_above)) return surface.error(error);
  }
  return error_reply(error);
}

}  // namespace winnow::server
