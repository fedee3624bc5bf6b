// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace winnow::server {

/// page.html.in with its style and script, put together by CMake. Replies replace `{nonce}` by a nonce.
extern const std::string_view kPage;

}  // namespace winnow::server
