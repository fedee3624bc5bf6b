// SPDX-License-Identifier: Apache-2.0
// Any bytes as a value of a text's store: refused, or exactly those that are written for what was read.
#include <algorithm>
#include <cstdlib>
#include <span>

#include "engine/text_value.h"
#include "fuzz/some_text_value.h"

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  winnow::MemoryAccount account;
  const auto value = std::as_bytes(std::span(data, size));
  for (const auto& name : winnow::test::some_names()) {
    auto layers = winnow::test::some_layers(account);
    if (!winnow::engine::read_value(value, name, layers)) continue;
    winnow::MemorySink again;
    winnow::engine::write_value(name, layers, again);
    if (!std::ranges::equal(value, again.bytes())) std::abort();
  }
  return 0;
}
