// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "attention/moments.h"
#include "winnow/policy/observer.h"

namespace winnow::policy {

/// Mean and covariance of the prompt's queries before RoPE, from its token `first` on.
ObserverPart<attention::QueryMoments> observe_moments(int first);

}  // namespace winnow::policy
