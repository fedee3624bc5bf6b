// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "server/http/byte_account.h"

namespace winnow::server {

/// The body of a request. Its bytes are counted in the connections' account until the last copy is gone.
class HttpBody {
 public:
  HttpBody() = default;
  HttpBody(std::string text, ByteShare share)
      : held_(std::make_shared<const Held>(Held{std::move(text), std::move(share)})) {}

  const std::string& text() const {
    static const std::string nothing;
    return held_ ? held_->text : nothing;
  }

 private:
  struct Held {
    std::string text;
    ByteShare share;
  };
  std::shared_ptr<const Held> held_;  ///< null: no body
};

}  // namespace winnow::server
