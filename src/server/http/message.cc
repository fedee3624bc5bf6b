// SPDX-License-Identifier: Apache-2.0
#include "server/http/message.h"

#include <algorithm>

namespace winnow::server {

std::string_view HttpHead::header(std::string_view name) const {
  const auto found = std::ranges::find(headers, name, &Header::first);
  return found == headers.end() ? std::string_view() : found->second;
}

}  // namespace winnow::server
