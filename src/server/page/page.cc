// SPDX-License-Identifier: Apache-2.0
#include "server/page/page.h"

#include <spdlog/fmt/fmt.h>

#include <random>
#include <string>
#include <string_view>

#include "server/page/text.h"

namespace winnow::server {

namespace {

/// A nonce for the page's own style and script, also sent in the header: 128 random bits.
std::string new_nonce() {
  std::random_device random;
  std::string out;
  for (int i = 0; i < 4; ++i) out += fmt::format("{:08x}", random());
  return out;
}

std::string replaced(std::string_view text, std::string_view what, const std::string& with) {
  std::string out;
  for (;;) {
    const auto found = text.find(what);
    out += text.substr(0, found);
    if (found == std::string_view::npos) return out;
    out += with;
    text.remove_prefix(found + what.size());
  }
}

}  // namespace

HttpReply page_reply() {
  const std::string nonce = new_nonce();
  const std::string policy = fmt::format(
      "default-src 'none'; script-src 'nonce-{0}'; style-src 'nonce-{0}'; img-src data:; connect-src 'self'; "
      "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
      nonce);
  return {.body = replaced(kPage, "{nonce}", nonce),
          .type = "text/html; charset=utf-8",
          .headers = {{"Content-Security-Policy", policy},
                      {"X-Content-Type-Options", "nosniff"},
                      {"Referrer-Policy", "no-referrer"},
                      {"Cache-Control", "no-store"}}};
}

}  // namespace winnow::server
