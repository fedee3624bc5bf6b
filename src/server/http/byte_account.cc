// SPDX-License-Identifier: Apache-2.0
#include "server/http/byte_account.h"

namespace winnow::server {

bool ByteAccount::add(std::size_t bytes) {
  std::size_t held = held_;
  do {
    if (held > 0 && (held > most_ || bytes > most_ - held)) return false;
  } while (!held_.compare_exchange_weak(held, held + bytes));
  const std::size_t now = held + bytes;
  for (std::size_t peak = peak_; peak < now && !peak_.compare_exchange_weak(peak, now);) continue;
  return true;
}

bool ByteShare::grow_to(std::size_t bytes) {
  if (bytes <= bytes_) return true;
  if (!account_->add(bytes - bytes_)) return false;
  bytes_ = bytes;
  return true;
}

}  // namespace winnow::server
