// SPDX-License-Identifier: Apache-2.0
#include "engine/shares.h"

#include <algorithm>

namespace winnow::engine {

void Shares::join(const std::string& key, const std::set<std::string>& busy) {
  std::erase_if(used_, [&](const auto& entry) { return entry.second <= now_ && !busy.contains(entry.first); });
  double& own = used_[key];
  own = std::max(own, now_);
}

void Shares::begin(const std::string& key) { now_ = std::max(now_, used_.at(key)); }

}  // namespace winnow::engine
