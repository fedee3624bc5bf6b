// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>

namespace winnow::engine {

/// Tokens that each key (user) of a scheduler has used. The key with the fewest comes next. This is start-time fair
/// queueing (Goyal et al. 1996); a deficit round robin gives the same shares.
class Shares {
 public:
  /// Adds a key. Its use is raised to that of the key whose request began last, so that idle time gives no advantage; a
  /// higher use stays. Keys not in `busy` (without requests) are forgotten once their use is not higher.
  void join(const std::string& key, const std::set<std::string>& busy);
  /// Notes that a request of this key begins.
  void begin(const std::string& key);
  void charge(const std::string& key, double tokens) { used_[key] += tokens; }
  double used(const std::string& key) const { return used_.at(key); }

 private:
  double now_ = 0;  ///< use of the key whose request began last, at that time
  std::map<std::string, double> used_;
};

}  // namespace winnow::engine
