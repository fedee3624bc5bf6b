// SPDX-License-Identifier: Apache-2.0
#include "server/openai/body_size.h"

namespace winnow::server {

std::size_t most_values(std::string_view json) {
  std::size_t out = 1;
  bool is_string = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (c == '"') is_string = !is_string;
    if (is_string && c == '\\') ++i;
    if (!is_string && (c == ',' || c == '[' || c == '{')) ++out;
  }
  return out;
}

}  // namespace winnow::server
