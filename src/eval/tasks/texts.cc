#include "eval/tasks/texts.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "winnow/error.h"

namespace winnow::eval {

std::vector<std::filesystem::path> text_files(const std::filesystem::path& folder) {
  if (!std::filesystem::is_directory(folder)) throw InputError(fmt::format("{}: no such folder", folder.string()));
  std::vector<std::filesystem::path> out;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".txt") out.push_back(entry.path());
  }
  if (out.empty()) throw InputError(fmt::format("{}: there is no .txt file", folder.string()));
  std::sort(out.begin(), out.end());
  return out;
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw InputError(fmt::format("{}: no such file", path.string()));
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string read_folder(const std::filesystem::path& folder) {
  std::string out;
  for (const auto& path : text_files(folder)) out += read_file(path) + "\n\n";
  return out;
}

std::string text_of(const Model& model, std::span<const Token> tokens) {
  std::string out;
  for (const Token token : tokens) out += model.piece(token);
  return out;
}

std::vector<Token> first_tokens(const Model& model, std::string_view text, int count) {
  constexpr std::size_t kBytes = 8;  // of a token, more than in any prose
  auto out = model.tokenize(text.substr(0, static_cast<std::size_t>(count) * kBytes));
  if (static_cast<int>(out.size()) < count) throw InputError(fmt::format("the text has {} tokens, {} are needed", out.size(), count));
  out.resize(static_cast<std::size_t>(count));
  return out;
}

}  // namespace winnow::eval
