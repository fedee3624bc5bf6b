// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "winnow/error.h"

namespace winnow {

/// A store that cannot be reached, read or written now: an unreachable server, a full disk, missing permission. The
/// same call may succeed later.
class WINNOW_EXPORT StoreError : public InputError {
 public:
  using InputError::InputError;
};

}  // namespace winnow
