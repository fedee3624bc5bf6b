// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "winnow/policy/observer.h"

namespace winnow::policy {

/// Scores of each entry that the session's calibration predicts, [H_kv][n]. REQUIRES: Method::needs_calibration.
ObserverPart<Scores> observe_predictions();

}  // namespace winnow::policy
