// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "policy/observers/layer_observers.h"

namespace winnow::test {

/// What a method reads again after a prompt of so many tokens, in a layer of KV heads with `group` query heads each.
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
