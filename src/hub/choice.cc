// SPDX-License-Identifier: Apache-2.0
#include "hub/choice.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

namespace winnow::hub {

namespace {

constexpr std::string_view kEnding = ".gguf";

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
char upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }

std::string in_lower_case(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), lower);
  return out;
}

/// Name of a GGUF file, without `.gguf` and the number of a part.
struct GgufName {
  std::string_view stem;
  int part = 1;
  int parts = 1;
};

/// Parses the first five characters as digits.
std::optional<int> five_digits(std::string_view text) {
  int out = 0;
  const char* const end = text.data() + 5;
  if (text[0] == '-' || std::from_chars(text.data(), end, out).ptr != end) return std::nullopt;
  return out;
}

/// REQUIRES: `path` ends with `.gguf`.
GgufName gguf_name(std::string_view path) {
  constexpr std::string_view kNumbers = "-00001-of-00002";
  const auto stem = path.substr(0, path.size() - kEnding.size());
  if (stem.size() <= kNumbers.size()) return {stem};
  const auto numbers = stem.substr(stem.size() - kNumbers.size());
  if (numbers[0] != '-' || in_lower_case(numbers.substr(6, 4)) != "-of-") return {stem};
  const auto part = five_digits(numbers.substr(1));
  const auto parts = five_digits(numbers.substr(10));
  if (!part || !parts) return {stem};
  return {stem.substr(0, stem.size() - kNumbers.size()), *part, *parts};
}

/// False for files that accompany a model, such as its vision part.
bool is_model(std::string_view path) {
  if (!path.ends_with(kEnding)) return false;
  const auto name = path.substr(path.rfind('/') + 1);
  return std::ranges::none_of(
      std::initializer_list<std::string_view>{"mmproj", "imatrix", "mtp-", "eagle3-", "dflash-", "dspark-"},
      [&](std::string_view other) { return name.find(other) != std::string_view::npos; });
}

bool begins_model(std::string_view path) {
  if (!is_model(path)) return false;
  const auto name = gguf_name(path);
  return name.parts <= 1 || name.part == 1;
}

bool has_quant(std::string_view path, const std::string& quant) {
  const auto text = in_lower_case(path);
  const auto wanted = in_lower_case(quant);
  return text.find(wanted + ".") != std::string::npos || text.find(wanted + "-") != std::string::npos;
}

/// All parts of the model whose first part is `first`.
Choice with_parts(const hf_cache::hf_files& files, const hf_cache::hf_file& first) {
  const auto name = gguf_name(first.path);
  if (name.parts <= 1) return {{first}};
  std::vector<std::pair<int, const hf_cache::hf_file*>> parts;
  for (const auto& file : files) {
    if (!file.path.ends_with(kEnding)) continue;
    const auto other = gguf_name(file.path);
    if (other.stem == name.stem && other.parts == name.parts) parts.emplace_back(other.part, &file);
  }
  std::ranges::stable_sort(parts, {}, &std::pair<int, const hf_cache::hf_file*>::first);
  Choice out{{}, name.parts};
  for (const auto& [part, file] : parts) out.parts.push_back(*file);
  return out;
}

/// The word after the last dash or dot of a model's name.
std::string quant_of(std::string_view path) {
  const auto stem = gguf_name(path).stem;
  std::string out(stem.substr(stem.find_last_of("-.") + 1));
  std::ranges::transform(out, out.begin(), upper);
  const bool is_word =
      std::ranges::all_of(out, [](char c) { return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; });
  return is_word && out.size() < stem.size() ? out : "";
}

}  // namespace

Choice choose(const hf_cache::hf_files& files, const std::string& quant) {
  for (const auto& wanted : quant.empty() ? std::vector<std::string>{"Q4_K_M", "Q8_0"} : std::vector{quant}) {
    for (const auto& file : files) {
      if (begins_model(file.path) && has_quant(file.path, wanted)) return with_parts(files, file);
    }
  }
  if (!quant.empty()) return {};
  const auto first = std::ranges::find_if(files, begins_model, &hf_cache::hf_file::path);
  return first == files.end() ? Choice() : with_parts(files, *first);
}

std::vector<std::string> quants_of(const hf_cache::hf_files& files) {
  std::vector<std::string> out;
  for (const auto& file : files) {
    if (!begins_model(file.path)) continue;
    const auto quant = quant_of(file.path);
    if (!quant.empty() && std::ranges::find(out, quant) == out.end()) out.push_back(quant);
  }
  return out;
}

}  // namespace winnow::hub
