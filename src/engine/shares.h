// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>

namespace winnow::engine {

/// Tokens that each key (user) of a scheduler has used: the one that has used the fewest comes next. This is start-time
/// fair queueing (Goyal et al. 1996); a deficit round robin gives the same shares.
class Shares {
 public:
  /// A key that comes has used at least as much as the one whose request began last had: it has saved nothing up, and
  /// owes what it has used more. Those that are not `busy`, without requests, are forgotten when they owe nothing.
  void join(const std::string& key, const std::set<std::string>& busy);
  /// A request of a key begins.
  void begin(const std::string& key);
  void charge(const std::string& key, double tokens) { used_[key] += tokens; }
  double used(const std::string& key) const { return used_.at(key); }

 private:
  double now_ = 0;  ///< what the key whose request began last had used then
  std::map<std::string, double> used_;
};

}  // namespace winnow::engine
