// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/file.h"

namespace winnow::cli {

/// Writes to stdout without buffering. Throws InputError if it is closed or full.
void write_stdout(std::string_view text);

/// Text for a person: show() writes to stdout, tell() to stderr. They escape control characters other than newlines,
/// since text may come from outside. show() throws what write_stdout() throws.
void show(std::string_view text);
void tell(std::string_view text);

/// Reads a whole file or pipe, or stdin for `-`. Throws InputError with the reason, Interrupted on Ctrl-C.
std::string read_file(const std::string& path);
/// The same for a text for a model. Also throws what check_text() throws.
std::string read_text(const std::string& path);

/// The kind of file that --dump-kept writes.
inline constexpr FileKind kKeptFile{R"({"spec":)", "a file of run --dump-kept"};

/// Replaces a file atomically: the old contents stay until all is written. Throws InputError (a full disk, no
/// permission, a file of another kind).
void write_file(const std::string& path, std::string_view text, const FileKind& kind = {});

}  // namespace winnow::cli
