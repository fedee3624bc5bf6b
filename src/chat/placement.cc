// SPDX-License-Identifier: Apache-2.0
#include "chat/placement.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace winnow::chat {

namespace {

/// The first place from `at` on with these words in input, since the template itself may have the same words. Each
/// stretch is searched once, and memmem() is linear in its length.
std::size_t find_input(const model::MarkedText& text, std::string_view words, std::size_t at) {
  auto stretch = std::ranges::upper_bound(text.input, at, {}, &model::MarkedText::Stretch::end);
  for (; stretch != text.input.end(); ++stretch) {
    const std::size_t begin = std::max(at, stretch->begin);
    const char* start = text.text.data() + begin;
    const void* found = memmem(start, stretch->end - begin, words.data(), words.size());
    if (found != nullptr) return begin + static_cast<std::size_t>(static_cast<const char*>(found) - start);
  }
  return kNowhere;
}

/// The part of a message that a template must render. Many drop an answer's thinking.
std::string_view words_of(const Message& message) {
  constexpr std::string_view kThought = "</think>";
  const std::string_view content = message.content;
  const auto thought = message.role == Role::assistant ? content.rfind(kThought) : std::string_view::npos;
  return trimmed(thought == std::string_view::npos ? content : content.substr(thought + kThought.size()));
}

/// Place and size of a message's words, which may be encoded as JSON.
struct Found {
  std::size_t at = kNowhere;
  std::size_t size = 0;
};

Found find_words(const model::MarkedText& text, std::string_view words, std::size_t begin) {
  if (const auto at = find_input(text, words, begin); at != kNowhere) return {at, words.size()};
  using Json = nlohmann::json;
  const std::string quoted = Json(words).dump(-1, ' ', false, Json::error_handler_t::replace);
  const auto inner = std::string_view(quoted).substr(1, quoted.size() - 2);
  return {find_input(text, inner, begin), inner.size()};
}

/// The longest sequence of letters and digits.
std::string_view longest_word(std::string_view text) {
  const auto is_letter = [](unsigned char c) { return c >= 0x80 || std::isalnum(c) != 0; };
  std::string_view longest;
  for (auto begin = text.begin(); begin != text.end();) {
    begin = std::find_if(begin, text.end(), is_letter);
    const auto end = std::find_if_not(begin, text.end(), is_letter);
    const std::string_view word(begin, end);
    if (word.size() > longest.size()) longest = word;
    begin = end;
  }
  return longest;
}

/// True if a template may omit or change a message's content, and a trace of it is there: templates drop text that
/// comes with calls, and reformat tool results that are JSON.
bool is_there_otherwise(const Message& message, const model::MarkedText& text) {
  if (!message.calls.empty()) return true;
  if (message.role != Role::tool) return false;
  const auto word = longest_word(message.content);
  return word.empty() || find_input(text, word, 0) != kNowhere;
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\n\r\f\v";
  const auto begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) + 1 - begin);
}

std::vector<std::size_t> places_of(std::span<const Message> messages, const model::MarkedText& text) {
  std::vector<std::size_t> out;
  std::size_t ruled = 0;  // after the last system message
  std::size_t said = 0;   // after the last other message
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const auto words = words_of(messages[i]);
    if (words.empty()) {
      out.push_back(kNowhere);
      continue;
    }
    std::size_t& begin = messages[i].role == Role::system ? ruled : said;
    const auto found = find_words(text, words, begin);
    if (found.at == kNowhere && !is_there_otherwise(messages[i], text)) {
      throw LeftOut(fmt::format("the model's chat template leaves out or changes message {}, which is the {}'s", i + 1,
                                name_of(messages[i].role)));
    }
    // Tool results may be in the order of their calls.
    if (found.at != kNowhere && messages[i].role != Role::tool) begin = found.at + found.size;
    out.push_back(found.at);
  }
  return out;
}

}  // namespace winnow::chat
