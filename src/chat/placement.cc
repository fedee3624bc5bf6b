// SPDX-License-Identifier: Apache-2.0
#include "chat/placement.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "chat/template.h"

namespace winnow::chat {

namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\n\r\f\v";
  const auto begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) + 1 - begin);
}

/// Whether all of a stretch is input: what the template says itself may have the same words.
bool is_input(const model::MarkedText& text, std::size_t begin, std::size_t end) {
  const auto after = std::ranges::upper_bound(text.input, begin, {}, &model::MarkedText::Stretch::begin);
  return after != text.input.begin() && end <= std::prev(after)->end;
}

/// The first place from `at` on where these words are input.
std::size_t find(const model::MarkedText& text, std::string_view words, std::size_t at) {
  for (at = text.text.find(words, at); at != std::string::npos; at = text.text.find(words, at + 1)) {
    if (is_input(text, at, at + words.size())) return at;
  }
  return kNowhere;
}

/// What a template must put: all, but of an answer what comes after the thinking, which many templates drop.
std::string_view words_of(const Message& message) {
  constexpr std::string_view kThought = "</think>";
  const std::string_view content = message.content;
  const auto thought = message.role == Role::assistant ? content.rfind(kThought) : std::string_view::npos;
  return trimmed(thought == std::string_view::npos ? content : content.substr(thought + kThought.size()));
}

}  // namespace

std::vector<std::size_t> places_of(std::span<const Message> messages, const model::MarkedText& text) {
  std::vector<std::size_t> out;
  std::size_t ruled = 0;  // after the last message of the system
  std::size_t said = 0;   // after the last one of the others
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const auto words = words_of(messages[i]);
    if (words.empty()) {
      out.push_back(kNowhere);
      continue;
    }
    std::size_t& begin = messages[i].role == Role::system ? ruled : said;
    const std::size_t at = find(text, words, begin);
    if (at == kNowhere) {
      throw TemplateError(
          fmt::format("message {} is the {}'s, and the model's chat template leaves it out or changes it", i + 1,
                      name_of(messages[i].role)));
    }
    begin = at + words.size();
    out.push_back(at);
  }
  return out;
}

}  // namespace winnow::chat
