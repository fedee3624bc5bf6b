// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace winnow::engine {

/// Passes on the bytes of an answer, holding back those that may begin a stop text.
class StopFilter {
 public:
  explicit StopFilter(std::vector<std::string> stops) : stops_(std::move(stops)) {}

  /// Takes bytes. Returns true if they complete a stop text; the answer then ends before it.
  bool take(std::string_view bytes);
  /// Takes bytes that may begin a stop text but cannot complete one.
  void pass(std::string_view bytes) { pending_ += bytes; }
  /// Returns the bytes that cannot be part of a stop text.
  std::string release() { return release(pending_.size() - held_back()); }
  /// Returns all remaining bytes at the end of the answer.
  std::string finish() { return release(pending_.size()); }

 private:
  std::string release(std::size_t n);
  std::size_t held_back() const;

  std::vector<std::string> stops_;
  std::string pending_;
};

}  // namespace winnow::engine
