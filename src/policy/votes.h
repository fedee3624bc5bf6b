// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "winnow/policy/method.h"

namespace winnow::policy {

/// winnow's own: a share of the places of each head goes to the entries that most heads of the layers before this one
/// have selected by their scores, in the pieces that the method keeps together. Of entries with as many votes the
/// better ones come first, so that without votes, in the first layer, places go by score. Places that votes have filled
/// give no votes. REQUIRES: the method draws nothing yet.
void add_votes(SelectionParts& selection, double share);

}  // namespace winnow::policy
