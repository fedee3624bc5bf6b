// SPDX-License-Identifier: Apache-2.0
#include "eval/tasks/texts.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "base/as_size.h"
#include "base/text_input.h"
#include "winnow/error.h"

namespace winnow::eval {

namespace {

bool is_inside_character(std::string_view text, std::size_t at) {
  return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U;
}

/// The longest beginning with at most `count` tokens, by bisection: the texts of tokens do not always add up to the
/// text.
std::string_view beginning(const Model& model, std::string_view text, int count) {
  constexpr std::size_t kBytes = 8;  // more than any token of prose has
  const auto tokens = [&](std::size_t bytes) {
    return static_cast<int>(model.vocab().tokenize(text.substr(0, bytes)).size());
  };
  std::size_t low = 0;
  std::size_t high = std::min(text.size(), as_size(count) * kBytes);
  if (const int all = tokens(high); all < count)
    throw InputError(fmt::format("the text has {} tokens, but {} are needed", all, count));
  while (high - low > 1) {
    const std::size_t middle = low + (high - low) / 2;
    (tokens(middle) <= count ? low : high) = middle;
  }
  while (is_inside_character(text, low)) --low;
  return text.substr(0, low);
}

}  // namespace

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

std::string read_file(const std::filesystem::path& path) { return TextInput(path.string()).read_all(); }

std::string read_folder(const std::filesystem::path& folder) {
  std::string out;
  for (const auto& path : text_files(folder)) out += read_file(path) + "\n\n";
  return out;
}

std::string_view spread_excerpt(std::string_view text, int i, int count) {
  const double share = 0.05 + 0.9 * i / count;
  const auto line = text.find('\n', static_cast<std::size_t>(share * static_cast<double>(text.size())));
  return text.substr(line == std::string_view::npos ? text.size() : line + 1);
}

std::vector<std::string> parts_of(const Model& model, std::string_view text, std::span<const int> tokens) {
  std::vector<std::string> out;
  for (const int count : tokens) {
    out.emplace_back(beginning(model, text, count));
    text.remove_prefix(out.back().size());
  }
  return out;
}

}  // namespace winnow::eval
