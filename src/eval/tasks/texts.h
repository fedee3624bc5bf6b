// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "winnow/model.h"

namespace winnow::eval {

/// The .txt files of a folder, in the order of their names. Throws InputError if the folder or such files are missing.
std::vector<std::filesystem::path> text_files(const std::filesystem::path& folder);

/// Throws InputError.
std::string read_file(const std::filesystem::path& path);

/// All texts of a folder, a blank line after each. Throws as above.
std::string read_folder(const std::filesystem::path& folder);

/// The text from the beginning of part `i` of `count`, which is the beginning of a line. Parts begin at equal
/// distances. Skips the first 5 %, where books have their table of contents.
std::string_view spread_excerpt(std::string_view text, int i, int count);

/// Consecutive parts of a text, from its beginning. Part i has tokens[i] tokens if it is tokenized alone. Throws
/// InputError if the text is too short.
std::vector<std::string> parts_of(const Model& model, std::string_view text, std::span<const int> tokens);

}  // namespace winnow::eval
