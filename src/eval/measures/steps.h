// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "winnow/session.h"

namespace winnow::eval {

using Logits = std::vector<float>;

/// One decode step of all caches together, each with its own token. `logits` receives the logits after it.
void step(Session& session, std::span<Cache* const> caches, std::span<const Token> tokens,
          std::span<Logits* const> logits);

/// The same token for all caches.
void step(Session& session, std::vector<Cache>& caches, Token token, std::vector<Logits>& logits);

/// ln p(token).
double log_probability(std::span<const float> logits, Token token);

}  // namespace winnow::eval
