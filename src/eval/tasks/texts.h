#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "winnow/model.h"

namespace winnow::eval {

/// The .txt files of a folder, in the order of their names. Throws InputError when there is no such folder or none in it.
std::vector<std::filesystem::path> text_files(const std::filesystem::path& folder);

/// Throws InputError.
std::string read_file(const std::filesystem::path& path);

/// All texts of a folder, a blank line behind each. Throws as above.
std::string read_folder(const std::filesystem::path& folder);

/// What tokens stand for.
std::string text_of(const Model& model, std::span<const Token> tokens);

/// The tokens that a text begins with. Throws InputError when it has fewer.
std::vector<Token> first_tokens(const Model& model, std::string_view text, int count);

}  // namespace winnow::eval
