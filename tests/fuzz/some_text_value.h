// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <numeric>
#include <vector>

#include "engine/text_value.h"

namespace winnow::test {

/// Bytes of layers of several sizes, one of them without any.
inline engine::LayerBytes some_layers(MemoryAccount& account) {
  const std::vector<std::size_t> sizes = {24, 0, 100};
  return {account, sizes, "the bytes of a test"};
}

/// Names of the keys and values of a block and of a state after it.
inline std::vector<engine::TextName> some_names() {
  std::vector<Token> text(64);
  std::iota(text.begin(), text.end(), 1);
  const engine::SessionKey session{{1, 2}, {3, 4}};
  auto out = engine::names_of(session, "owner", text);
  out.push_back(engine::name_of_state(session, out.front(), "attention all sum one"));
  return out;
}

}  // namespace winnow::test
