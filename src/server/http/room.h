// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "server/http/byte_account.h"
#include "server/http/limits.h"
#include "server/http/message.h"

namespace winnow::server {

/// State that all connections share; it outlives them.
struct HttpRoom {
  HttpRoom(HttpHandler& h, const HttpLimits& l)
      : handler(h),
        limits(l),
        bodies(std::make_shared<ByteAccount>(limits.all_bodies_bytes())),
        replies(std::make_shared<ByteAccount>(limits.all_replies_bytes)) {}

  HttpHandler& handler;
  const HttpLimits& limits;
  std::shared_ptr<ByteAccount> bodies;   ///< bodies that are being received or wait for a worker
  std::shared_ptr<ByteAccount> replies;  ///< complete replies that are being sent
};

}  // namespace winnow::server
