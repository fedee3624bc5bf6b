// SPDX-License-Identifier: Apache-2.0
#include "server/http/message.h"

#include <algorithm>

namespace winnow::server {

std::string lower_case(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char c) { return 'A' <= c && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return out;
}

std::string_view HttpHead::header(std::string_view name) const {
  const auto found = std::ranges::find(headers, name, &Header::first);
  return found == headers.end() ? std::string_view() : found->second;
}

}  // namespace winnow::server
