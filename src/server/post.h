// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

namespace winnow::server {

/// Has a function called by another thread, soon.
using Post = std::function<void(std::function<void()>)>;

}  // namespace winnow::server
