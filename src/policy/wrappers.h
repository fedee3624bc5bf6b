// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "winnow/policy/registry.h"

/// Wrappers exchange one part of a method and refuse, with the reason, what has no such part or has it exchanged
/// already.
namespace winnow::policy::wrappers {

/// ada(X): heads share a layer's budget by need.
Wrapper ada();
/// pyramid(X): the budget falls from layer to layer.
Wrapper pyramid();
/// chunk(X): whole chunks of consecutive positions stay.
Wrapper chunk();

}  // namespace winnow::policy::wrappers
