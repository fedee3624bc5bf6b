// SPDX-License-Identifier: Apache-2.0
#include "model/token_class.h"

#include <algorithm>
#include <array>

namespace winnow::model {

namespace {

/// Independent of the locale, unlike isalnum.
bool is_in_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' || c == '-';
}

/// Characters that may stand between the end of a sentence and the next one.
constexpr std::array<std::string_view, 10> kClosing = {" ", "\t", "\"", "'", ")", "]", "”", "’", "»", "*"};
constexpr std::array<std::string_view, 7> kMarks = {".", "!", "?", "…", "。", "！", "？"};

bool ends_sentence(std::string_view text) {
  const auto closes = [&text](std::string_view end) { return text.ends_with(end); };
  for (auto end = std::find_if(kClosing.begin(), kClosing.end(), closes); end != kClosing.end();
       end = std::find_if(kClosing.begin(), kClosing.end(), closes))
    text.remove_suffix(end->size());
  return std::any_of(kMarks.begin(), kMarks.end(), closes);
}

}  // namespace

TokenClass class_of(std::string_view text) {
  TokenClass out;
  out.ends_line = text.empty() || text.find('\n') != std::string_view::npos;
  if (text.empty()) return out;
  out.begins_in_word = is_in_word(text.front());
  out.ends_in_word = is_in_word(text.back());
  out.ends_sentence = ends_sentence(text);
  return out;
}

}  // namespace winnow::model
