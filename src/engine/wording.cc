// SPDX-License-Identifier: Apache-2.0
#include "engine/wording.h"

#include <algorithm>
#include <array>
#include <string>

namespace winnow {

namespace {

/// Bytes of white space before the words of a text.
std::size_t leading_space(std::string_view text) {
  const auto words = chat::trimmed(text);
  return words.empty() ? text.size() : static_cast<std::size_t>(words.data() - text.data());
}

/// Messages with the conversation's text before the first user message.
std::vector<Message> with_text(const Conversation& conversation) {
  std::vector<Message> out = conversation.messages;
  const auto first = std::ranges::find(out, Role::user, &Message::role);
  if (conversation.text.empty() || first == out.end()) return out;
  const bool follows = conversation.format == PromptFormat::chat && !first->content.empty();
  first->content.insert(0, conversation.text + (follows ? "\n\n" : ""));
  return out;
}

Wording in_a_row(std::vector<Message> messages) {
  Wording out;
  for (const auto& message : messages) {
    const bool is_told = message.role != Role::system && !chat::trimmed(message.content).empty();
    out.places.push_back(is_told ? out.text.text.size() + leading_space(message.content) : chat::kNowhere);
    if (message.role != Role::system) out.text.append_input(message.content);
  }
  out.messages = std::move(messages);
  return out;
}

/// The part of a text from a byte on.
model::MarkedText rest_of(const model::MarkedText& text, std::size_t byte) {
  model::MarkedText out{text.text.substr(byte), {}};
  for (const auto& stretch : text.input) {
    if (stretch.end > byte) out.input.push_back({std::max(stretch.begin, byte) - byte, stretch.end - byte});
  }
  return out;
}

}  // namespace

std::size_t Wording::begin_of_last(std::size_t message, std::size_t size) const {
  const std::string& content = messages[message].content;
  if (places[message] != chat::kNowhere) {
    const std::size_t first = leading_space(content);
    const std::size_t wanted = std::max(content.size() - size, first) - first;
    return std::min(places[message] + std::min(wanted, chat::trimmed(content).size()), text.text.size());
  }
  for (std::size_t i = message; i-- > 0;) {  // end of the last rendered message before it
    if (places[i] != chat::kNowhere) return places[i] + chat::trimmed(messages[i].content).size();
  }
  return 0;
}

namespace {

/// Templates can leave only an assistant message open. Any other last message is cut where its text ends.
Wording up_to_its_words(const Model& model, chat::Input input, ControlTokens control) {
  std::vector<Message> messages(input.messages.begin(), input.messages.end());
  std::string& words = messages.back().content;
  const bool has_words = !chat::trimmed(words).empty();
  if (!has_words) words = "words";  // placeholder, to find its position
  input.messages = messages;
  input.ending = chat::Ending::nothing;
  Wording out = write(model, input, control);
  const std::size_t end = out.begin_of_last(messages.size() - 1, has_words ? 0 : words.size());
  out.text.text.resize(end);
  std::erase_if(out.text.input, [=](const auto& stretch) { return stretch.begin >= end; });
  if (!out.text.input.empty()) out.text.input.back().end = std::min(out.text.input.back().end, end);
  return out;
}

}  // namespace

Wording write(const Model& model, const chat::Input& input, ControlTokens control) {
  if (input.ending == chat::Ending::continued && input.messages.back().role != Role::assistant)
    return up_to_its_words(model, input, control);
  auto rendering = model.impl().chat_template().render(input);
  Wording out{std::move(rendering.text),
              {input.messages.begin(), input.messages.end()},
              std::move(rendering.messages),
              std::move(rendering.answer),
              std::move(rendering.left_out)};
  if (control == ControlTokens::parsed) out.text.input.clear();
  return out;
}

Wording write(const Model& model, const Conversation& conversation, chat::Ending ending) {
  auto messages = with_text(conversation);
  if (conversation.format == PromptFormat::chat) {
    chat::Input input;
    input.messages = messages;
    input.ending = ending;
    return write(model, input, conversation.control);
  }
  Wording out = in_a_row(std::move(messages));
  if (conversation.control == ControlTokens::parsed) out.text.input.clear();
  return out;
}

namespace {

/// Tokens of a tag within an answer, without the space that some vocabularies add at the beginning of a text.
std::vector<Token> tag_tokens(const std::string& tag, const model::Vocab& vocab) {
  model::MarkedText text;
  text.append_template("\n" + tag);
  return tag.empty() ? std::vector<Token>() : tokens_from(vocab, text, 1);
}

void tell_tags(const chat::AnswerFormat& format, const model::Vocab& vocab, ThinkingOptions& of) {
  of.start = tag_tokens(format.thinking_start, vocab);
  for (const auto& end : format.thinking_ends) of.ends.push_back(tag_tokens(end, vocab));
  if (format.is_thinking) of.begins = ThinkingBegin::prompt;
}

}  // namespace

void demand(const chat::AnswerFormat& format, const Model& model, GenerateOptions& of) {
  const auto& vocab = model.impl().vocab;
  for (const auto& name : format.preserved) {
    const auto tokens = vocab.tokenize(name, ControlTokens::parsed);
    if (tokens.size() == 1) of.preserved_tokens.push_back(tokens.front());
  }
  tell_tags(format, vocab, of.thinking);
  of.stop.insert(of.stop.end(), format.stops.begin(), format.stops.end());
  if (!of.grammar.empty()) return;
  of.grammar = format.grammar;
  of.grammar_triggers = format.triggers;
  if (of.grammar_triggers.empty()) of.grammar_prefix = format.prefix;
}

std::vector<Token> tokens_of(const model::Vocab& vocab, const model::MarkedText& text, std::span<std::size_t> places) {
  std::vector<Token> out = vocab.beginning();
  const auto tokens = vocab.tokenize(text, places);
  if (!tokens.empty() && out == std::vector<Token>{tokens.front()}) out.clear();  // the template writes BOS itself
  for (auto& place : places) place += out.size();
  out.insert(out.end(), tokens.begin(), tokens.end());
  return out;
}

std::vector<Token> tokens_of(const Model& model, const model::MarkedText& text, std::span<std::size_t> places) {
  return tokens_of(model.impl().vocab, text, places);
}

std::vector<Token> tokens_from(const model::Vocab& vocab, const model::MarkedText& text, std::size_t byte) {
  if (byte == 0) return vocab.tokenize(text, {});
  std::array<std::size_t, 2> around{byte - 1, byte};
  auto tokens = vocab.tokenize(text, around);
  const auto [before, first] = around;
  if (before == first) return vocab.tokenize(rest_of(text, byte), {});  // one token spans the border
  tokens.erase(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(first));
  return tokens;
}

}  // namespace winnow
