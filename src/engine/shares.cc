// SPDX-License-Identifier: Apache-2.0
#include "engine/shares.h"

#include <algorithm>

namespace winnow::engine {

void Shares::join(const std::string& key) {
  const auto least =
      std::min_element(used_.begin(), used_.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  used_.try_emplace(key, least == used_.end() ? 0 : least->second);
}

void Shares::keep(const std::function<bool(const std::string&)>& has_requests) {
  std::erase_if(used_, [&](const auto& entry) { return !has_requests(entry.first); });
}

}  // namespace winnow::engine
