// SPDX-License-Identifier: Apache-2.0
#include "cli/texts.h"

#include <spdlog/fmt/fmt.h>

#include <CLI/CLI.hpp>

#include "base/memory.h"
#include "cli/sizes.h"
#include "store/values.h"
#include "winnow/error.h"

namespace winnow::cli {

void add_text_options(CLI::App& command, TextArguments& arguments, const std::string& memory) {
  command.add_option("--prefix-memory", arguments.memory, memory);
  command.add_option("--texts", arguments.place,
                     fmt::format("store of texts that have been read, besides memory: {}", kStoreForm));
  command.add_option("--texts-size", arguments.place_size,
                     "most bytes of the folder of --texts: 100GiB (default: 20GiB)");
  command
      .add_option("--text-type", arguments.type,
                  "how texts are stored: exact, or q8_0 for about half the bytes, with slightly different answers over "
                  "stored texts (default: exact)")
      ->check(CLI::IsMember({"exact", "q8_0"}));
}

TextOptions TextChoice::with(std::size_t bytes) const {
  TextOptions out = options;
  out.memory = bytes;
  return out;
}

TextOptions TextChoice::with_free_memory() const { return with(memory.value_or(available_memory() / 4)); }

TextChoice texts_of(const TextArguments& arguments) {
  TextChoice out;
  if (!arguments.memory.empty()) out.memory = size_of("--prefix-memory", arguments.memory);
  out.options.place = arguments.place;
  if (arguments.type == "q8_0") out.options.type = TextType::q8_0;
  const bool is_folder = !arguments.place.empty() && store::is_folder({arguments.place, "texts"});
  if (arguments.place_size.empty()) return out;
  if (!is_folder)
    throw UsageError(fmt::format("--texts-size {} is for a folder of --texts: a Redis server has its maxmemory",
                                 arguments.place_size));
  out.options.place_size = size_of("--texts-size", arguments.place_size);
  return out;
}

}  // namespace winnow::cli
