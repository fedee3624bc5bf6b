// SPDX-License-Identifier: Apache-2.0
// Tokenization of prompts and conversations.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/as_size.h"
#include "engine/model_impl.h"
#include "engine/wording.h"
#include "winnow/error.h"

namespace winnow {

namespace {

/// Refuses a text that is far too long for the model before time and memory go into its tokens.
void check_length(const Model::Impl& model, std::size_t bytes) {
  const std::size_t least = model.vocab.least_tokens(bytes);
  if (least <= model.most_tokens) return;
  throw InputError(fmt::format(
      "the prompt has {} bytes and so at least {} tokens: the model's context is {} tokens, and at most {} are read",
      bytes, least, model.info.context, model.most_tokens));
}

/// True if the text before an answer is the prompt that it answered, followed by its thinking. White space may differ:
/// many templates write some before earlier answers and leave it to the model in a new one.
bool goes_on(std::string_view before, std::string_view asked, std::string_view thought) {
  asked = asked.substr(0, asked.find_last_not_of(" \n\t") + 1);
  if (!before.starts_with(asked)) return false;
  const auto between = before.substr(asked.size());
  thought = chat::trimmed(thought);
  return thought.empty() ? chat::trimmed(between).empty() : between.find(thought) != std::string_view::npos;
}

/// Splits tokens into a text and a question, which begins at `at`.
Prompt split(std::vector<Token> tokens, std::size_t at) {
  const auto middle = tokens.begin() + static_cast<std::ptrdiff_t>(at);
  Prompt out{{}, {middle, tokens.end()}};
  tokens.erase(middle, tokens.end());
  out.text = std::move(tokens);
  return out;
}

/// The prompt of the first question of a conversation.
Prompt prompt_of(const Model& model, const Conversation& conversation, const std::string& question) {
  const auto wording = write(model, conversation.with_question(question), chat::Ending::answer);
  std::size_t at = wording.begin_of_last(wording.messages.size() - 1, question.size());
  auto tokens = tokens_of(model, wording.text, std::span(&at, 1));
  return split(std::move(tokens), at);
}

/// Length of the common prefix.
std::size_t common_beginning(std::span<const Token> a, std::span<const Token> b) {
  return as_size(std::ranges::mismatch(a, b).in1 - a.begin());
}

/// Prompts with a common text. Tokens at the end of the text that depend on the question become part of the question.
Prompts join(std::vector<Prompt> prompts) {
  std::size_t size = prompts.front().text.size();
  for (const auto& prompt : prompts) size = std::min(size, common_beginning(prompts.front().text, prompt.text));
  Prompts out;
  for (const auto& [text, question] : prompts) {
    auto& rest = out.questions.emplace_back(text.begin() + static_cast<std::ptrdiff_t>(size), text.end());
    rest.insert(rest.end(), question.begin(), question.end());
  }
  out.text = std::move(prompts.front().text);
  out.text.resize(size);
  return out;
}

/// The byte after an answer that was read. Nullopt if the template now renders the answer, or the prompt before it,
/// differently than it did then. `asked`: the prompt of the answer; `wording`: the conversation with the next question.
std::optional<std::size_t> end_of_answer(const Wording& asked, const Wording& wording, std::size_t answer) {
  const std::string& now = wording.text.text;
  const std::string_view content = wording.messages[answer].content;
  const std::string_view words = chat::trimmed(content);
  const std::string& thought = wording.messages[answer].reasoning;
  if (words.empty() && !thought.empty()) return std::nullopt;  // stopped before it said anything
  if (words.empty()) return now.starts_with(asked.text.text) ? std::optional(asked.text.text.size()) : std::nullopt;
  const std::size_t begin = wording.places[answer];
  if (now.compare(begin, words.size(), words) != 0) return std::nullopt;  // only a part of the answer is rendered
  if (!goes_on(std::string_view(now).substr(0, begin), asked.text.text, thought)) return std::nullopt;
  const std::string_view space = content.substr(as_size(words.data() + words.size() - content.data()));
  const std::size_t end = begin + words.size();
  return now.compare(end, space.size(), space) == 0 ? end + space.size() : end;
}

/// Placeholder for a question. The tokens before it are the same for every question that does not begin with white
/// space.
constexpr const char* kSomeQuestion = "Q";

}  // namespace

const Message* Conversation::last() const {
  const auto found =
      std::find_if(messages.rbegin(), messages.rend(), [](const Message& m) { return m.role != Role::system; });
  return found == messages.rend() ? nullptr : &*found;
}

bool Conversation::awaits_answer() const {
  const Message* const message = last();
  return message != nullptr && message->role == Role::user;
}

Conversation Conversation::with_question(std::string question) const {
  Conversation out = *this;
  if (awaits_answer()) out.messages.push_back({Role::assistant, ""});
  out.messages.push_back({Role::user, std::move(question)});
  return out;
}

Conversation before_question(const PromptText& prompt) {
  Conversation out{prompt.text, {}, prompt.format, prompt.control};
  if (!prompt.system.empty()) out.messages.push_back({Role::system, prompt.system});
  return out;
}

Prompt Model::tokenize(const PromptText& prompt) const {
  auto [text, questions] = tokenize(before_question(prompt), std::span(&prompt.question, 1));
  return {std::move(text), std::move(questions.front())};
}

Prompts Model::tokenize(const Conversation& c, std::span<const std::string> questions) const {
  std::size_t longest = 0;
  for (const auto& question : questions) longest = std::max(longest, question.size());
  if (c.text.empty() && longest == 0)
    throw InputError("the prompt is empty: give a text (-f), a question (-p) or both");
  check_length(*impl_, c.text.size() + longest);
  std::vector<Prompt> prompts;
  for (const auto& question : questions) prompts.push_back(prompt_of(*this, c, question));
  return join(std::move(prompts));
}

std::vector<Token> Model::tokenize(const Conversation& c) const {
  const Message* const last = c.last();
  if (last != nullptr && last->role == Role::assistant)
    throw UsageError("the conversation ends with an answer: add a message of the user");
  if (c.text.empty() && (last == nullptr || last->content.empty()))
    throw InputError("the prompt is empty: there is nothing to read");
  check_length(*impl_, c.text.size() + (last == nullptr ? 0 : last->content.size()));
  if (last == nullptr) return prompt_of(*this, c, kSomeQuestion).text;
  return tokens_of(*this, write(*this, c, chat::Ending::answer).text);
}

Turn Model::turn(const Conversation& read, const std::string& question) const {
  check_length(*impl_, question.size());
  const Conversation next = read.with_question(question);
  const Wording wording = write(*this, next, chat::Ending::answer);
  const std::size_t asked_at = wording.messages.size() - 1;
  if (read.last() == nullptr)
    return {tokens_from(impl_->vocab, wording.text, wording.begin_of_last(asked_at, question.size())), Past::unchanged};
  Conversation asked = read;  // up to the last question
  while (asked.messages.back().role != Role::user) asked.messages.pop_back();
  const std::size_t answer = asked.messages.size();
  const auto end = end_of_answer(write(*this, asked, chat::Ending::answer), wording, answer);
  const std::size_t from = end.value_or(wording.begin_of_last(answer, 0));
  return {tokens_from(impl_->vocab, wording.text, from), end ? Past::unchanged : Past::rewritten};
}

}  // namespace winnow
