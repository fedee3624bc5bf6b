// SPDX-License-Identifier: Apache-2.0
#include "server/keys.h"

#include <cstddef>

namespace winnow::server {

namespace {

/// Looks at all bytes, wherever the first difference is.
bool is_same(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  volatile unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    difference = difference | (static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]));
  return difference == 0;
}

}  // namespace

std::string_view Keys::key_of(const HttpHead& head) {
  constexpr std::string_view kBearer = "bearer ";
  const std::string_view field = head.header("authorization");
  if (field.size() < kBearer.size()) return head.header("x-api-key");
  for (std::size_t i = 0; i < kBearer.size(); ++i) {
    if ((field[i] | 0x20) != kBearer[i]) return head.header("x-api-key");  // letters become lower case
  }
  return field.substr(kBearer.size());
}

bool Keys::allow(const HttpHead& head) const {
  if (keys_.empty()) return true;
  const std::string_view given = key_of(head);
  bool known = false;
  for (const auto& key : keys_) known = is_same(key, given) || known;
  return known;
}

}  // namespace winnow::server
