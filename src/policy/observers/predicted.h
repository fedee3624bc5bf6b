// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "winnow/policy/observer.h"

namespace winnow::policy {

/// Scores that the session's calibration predicts for each entry, [H_kv][n]. REQUIRES: Method::calibration is
/// predicted_scores().
ObserverPart<Scores> observe_predictions();

}  // namespace winnow::policy
