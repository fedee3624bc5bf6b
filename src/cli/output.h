// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/file.h"

namespace winnow::cli {

/// Writes to stdout at once. Throws InputError when it is closed or full.
void write_stdout(std::string_view text);

/// Text for a person: show() writes to stdout, tell() to stderr. Control characters other than line ends are escaped,
/// since text may come from outside. show() throws what write_stdout() does.
void show(std::string_view text);
void tell(std::string_view text);

/// A whole file or pipe, or stdin for `-`. Throws InputError with the reason, Interrupted on Ctrl-C.
std::string read_file(const std::string& path);
/// The same of a text for a model. Throws what check_text() throws, too.
std::string read_text(const std::string& path);

/// The kind of file that --dump-kept writes.
inline constexpr FileKind kKeptFile{R"({"spec":)", "what --dump-kept writes"};

/// Replaces a file in one step: what was there stays until all is written. Throws InputError (a full disk, no
/// permission, a file of another kind).
void write_file(const std::string& path, std::string_view text, const FileKind& kind = {});

}  // namespace winnow::cli
