#pragma once

#include <string>
#include <string_view>

namespace winnow::cli {

/// Writes to stdout at once. Throws InputError when it is closed or full.
void write_stdout(std::string_view text);

/// A whole file, or stdin for `-`. Throws InputError with the reason.
std::string read_text(const std::string& path);

/// Replaces a file in one step: what was there stays until all is written. Throws InputError (a full disk, no
/// permission).
void write_file(const std::string& path, std::string_view text);

}  // namespace winnow::cli
