// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>

namespace winnow::engine {

/// Tokens that each key (user) of a scheduler has used: the one that has used the fewest comes next. This is fair
/// queueing by virtual time; a deficit round robin gives the same shares.
class Shares {
 public:
  /// A key that comes, or comes again, is level with the one that has used the least: it has saved nothing up.
  void join(const std::string& key);
  void charge(const std::string& key, double tokens) { used_[key] += tokens; }
  double used(const std::string& key) const { return used_.at(key); }
  /// Forgets the keys that have no requests.
  void keep(const std::function<bool(const std::string&)>& has_requests);

 private:
  std::map<std::string, double> used_;
};

}  // namespace winnow::engine
