// SPDX-License-Identifier: Apache-2.0
#include "server/openai/unknown_fields.h"

#include <spdlog/fmt/fmt.h>

#include "base/log.h"
#include "base/printable.h"

namespace winnow::server {

void UnknownFields::name(const Fields& fields) {
  for (const auto& name : fields.unread())
    say(fmt::format("the field {} of requests is unknown, and is ignored", brief(name)));
}

void UnknownFields::say(const std::string& sentence) {
  constexpr std::size_t kMostSaid = 100;
  const std::lock_guard lock(mutex_);
  if (said_.size() < kMostSaid && said_.insert(sentence).second) log().info("{}", sentence);
}

}  // namespace winnow::server
