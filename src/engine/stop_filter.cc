// SPDX-License-Identifier: Apache-2.0
#include "engine/stop_filter.h"

#include <algorithm>

namespace winnow::engine {

/// Searches only for stop texts that end within the new bytes. (Bytes of pass() may contain stop texts that do not
/// count.)
bool StopFilter::take(std::string_view bytes) {
  const std::size_t before = pending_.size();
  pending_ += bytes;
  std::size_t first = std::string::npos;
  for (const auto& stop : stops_) {
    if (stop.empty()) continue;
    first = std::min(first, pending_.find(stop, before + 1 > stop.size() ? before + 1 - stop.size() : 0));
  }
  if (first == std::string::npos) return false;
  pending_.resize(first);
  return true;
}

std::string StopFilter::release(std::size_t n) {
  std::string out = pending_.substr(0, n);
  pending_.erase(0, n);
  return out;
}

std::size_t StopFilter::held_back() const {
  std::size_t most = 0;
  for (const auto& stop : stops_) {
    if (stop.empty()) continue;
    for (std::size_t n = std::min(stop.size() - 1, pending_.size()); n > most; --n) {
      if (pending_.compare(pending_.size() - n, n, stop, 0, n) == 0) most = n;
    }
  }
  return most;
}

}  // namespace winnow::engine
