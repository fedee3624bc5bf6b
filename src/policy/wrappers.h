// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "winnow/policy/registry.h"

/// A wrapper exchanges one part of a method, or gives it a task. It refuses, with the reason, a method that has no such
/// part, and one whose part has been exchanged already.
namespace winnow::policy::wrappers {

/// ada(X): heads share a layer's budget by need.
Wrapper ada();
/// pyramid(X): the budget falls from layer to layer.
Wrapper pyramid();
/// chunk(X): whole chunks of consecutive positions are kept.
Wrapper chunk();
/// span(X): words around the best entries are kept.
Wrapper span();
/// lookahead(X): another method, for which X drafts.
Wrapper lookahead();
/// critical(X): a part of the budget goes by what values add to the layer's output, too.
Wrapper critical();
/// refit(X): kept entries get values by which the prompt's last queries see what they saw.
Wrapper refit();
/// decoding(X): evicts at every decode step, too, by scores that fade.
Wrapper decoding();
/// kvzip(X): what the model looks at when it repeats the prompt counts, too.
Wrapper kvzip();
/// quest(X): queries read pages of what X keeps.
Wrapper quest();

}  // namespace winnow::policy::wrappers
