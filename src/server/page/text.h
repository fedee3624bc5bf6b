// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace winnow::server {

/// page.html.in with its style and its script, which CMake puts together. A reply has its nonce where `{nonce}` stands.
extern const std::string_view kPage;

}  // namespace winnow::server
