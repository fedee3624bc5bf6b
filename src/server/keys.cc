// SPDX-License-Identifier: Apache-2.0
#include "server/keys.h"

#include <cstddef>
#include <string_view>

namespace winnow::server {

namespace {

/// Compares all bytes, wherever the first difference is.
bool is_same(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  volatile unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    difference = difference | (static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]));
  return difference == 0;
}

/// The key in a request, or "".
std::string_view key_of(const HttpHead& head) {
  constexpr std::string_view kBearer = "bearer ";
  const std::string_view field = head.header("authorization");
  if (field.size() < kBearer.size()) return head.header("x-api-key");
  for (std::size_t i = 0; i < kBearer.size(); ++i) {
    if ((field[i] | 0x20) != kBearer[i]) return head.header("x-api-key");  // the bit converts to lower case
  }
  return field.substr(kBearer.size());
}

}  // namespace

const ApiKey* Keys::find(const HttpHead& head) const {
  const std::string_view given = key_of(head);
  const ApiKey* found = nullptr;
  for (const auto& key : keys_) found = is_same(key.key, given) ? &key : found;
  return found;
}

std::string Keys::owner_of(const HttpHead& head) const { return keys_.empty() ? "" : std::string(key_of(head)); }

std::string Keys::name_of(const HttpHead& head) const {
  const ApiKey* const found = find(head);
  return found == nullptr ? "" : found->name;
}

}  // namespace winnow::server
