// SPDX-License-Identifier: Apache-2.0
// Values of a block and of a state.
#include <string>

#include "engine/text_value.h"
#include "fuzz/seeds.h"
#include "fuzz/some_text_value.h"

void winnow::test::write_seeds(const std::filesystem::path& folder) {
  MemoryAccount account;
  const auto layers = some_layers(account);
  for (const auto& name : some_names()) {
    MemorySink sink;
    engine::write_value(name, layers, sink);
    const auto& bytes = sink.bytes();
    write_seed(folder / (name.state.empty() ? "block" : "state"),
               std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  }
}
