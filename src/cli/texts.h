// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "winnow/session.h"

namespace CLI {
class App;
}

namespace winnow::cli {

/// The values of an option that names a store.
inline constexpr const char* kStoreForm =
    "a folder, or redis[s]://[[USER][:PASSWORD]@]HOST[:PORT][/DATABASE], with the password better in "
    "WINNOW_REDIS_PASSWORD (default: nowhere)";

/// Options about texts that are stored for later prompts, as CLI11 sets them.
struct TextArguments {
  std::string memory;
  std::string place;
  std::string place_size;
  std::string type = "exact";
};

/// Adds --prefix-memory, described by `memory`, --texts, --texts-size and --text-type.
void add_text_options(CLI::App& command, TextArguments& arguments, const std::string& memory);

/// Those options after all checks that need no machine.
struct TextChoice {
  std::optional<std::size_t> memory;  ///< empty: a share of the free memory
  TextOptions options;                ///< without the memory

  TextOptions with(std::size_t bytes) const;
  /// With a quarter of the free memory, unless another size was chosen.
  TextOptions with_free_memory() const;
};

/// Throws UsageError, and what store::is_folder() throws.
TextChoice texts_of(const TextArguments& arguments);

}  // namespace winnow::cli
