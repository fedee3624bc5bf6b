// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "winnow/policy/registry.h"

/// A wrapper replaces a part of a method, or adds a task to it. It refuses, with the reason, a method that lacks the
/// part, and one whose part has been replaced already.
namespace winnow::policy::wrappers {

/// ada(X): heads share a layer's budget by need.
Wrapper ada();
/// pyramid(X): the budget falls from layer to layer.
Wrapper pyramid();
/// chunk(X): whole chunks of consecutive positions are kept together.
Wrapper chunk();
/// span(X): words around the best entries are kept.
Wrapper span();
/// lookahead(X): X's cache drafts an answer, whose attention ranks entries.
Wrapper lookahead();
/// critical(X): for a part of the budget, scores are weighted by the values' effect on the layer's output.
Wrapper critical();
/// refit(X): kept entries get values that reproduce the outputs of the prompt's last queries.
Wrapper refit();
/// decoding(X): evicts at every decode step, too, by decaying scores.
Wrapper decoding();
/// kvzip(X): attention from a repetition of the prompt counts, too.
Wrapper kvzip();
/// quest(X): each query reads pages of the entries that X keeps.
Wrapper quest();

}  // namespace winnow::policy::wrappers
