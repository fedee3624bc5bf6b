// SPDX-License-Identifier: Apache-2.0
#include "server/hidden_place.h"

#include "base/log.h"
#include "base/printable.h"

namespace winnow::server {

namespace {

/// Replaces all occurrences of `part`, which is not empty, by `by`.
std::string with_replaced(std::string text, const std::string& part, const std::string& by) {
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + by.size()))
    text.replace(at, part.size(), by);
  return text;
}

}  // namespace

std::string HiddenPlace::without(const std::string& sentence) const {
  if (place_.empty() || sentence.find(place_) == std::string::npos) return sentence;
  log().warn("{}", printable(sentence));
  return with_replaced(with_replaced(sentence, " in " + place_, " in the server's store"), place_,
                       "the server's store");
}

}  // namespace winnow::server
