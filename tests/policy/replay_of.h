// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "policy/observers/layer_observers.h"

namespace winnow::test {

/// The replay that a method requests after a prompt of `tokens` tokens, in a layer with `group` query heads for each KV
/// head.
inline policy::Replay replay_of(const policy::Method& method, int tokens, int group, int budget) {
  const policy::LayerPrompt prompt{tokens, group};
  const policy::Asking asking{.prompt = prompt, .budget = budget, .first_layer = prompt};
  for (const auto& part : method.observers.parts()) {
    const auto request = part.ask(asking);
    if (request->replay() != nullptr) return *request->replay();
  }
  return {};
}

}  // namespace winnow::test
