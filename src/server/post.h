// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

namespace winnow::server {

/// Runs a function soon in another thread.
using Post = std::function<void(std::function<void()>)>;

}  // namespace winnow::server
