// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "winnow/error.h"

namespace winnow {

/// A budget that is too small for its method, the model and the prompt.
class WINNOW_EXPORT BudgetError : public UsageError {
 public:
  using UsageError::UsageError;
};

}  // namespace winnow
