// SPDX-License-Identifier: Apache-2.0
// From words to tokens: prompts and conversations.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "base/as_size.h"
#include "engine/model_impl.h"
#include "winnow/error.h"

namespace winnow {

namespace {

/// What stands before, between and after the messages of a conversation.
using Frame = std::vector<std::string>;

void append(std::vector<Token>& to, const std::vector<Token>& more) { to.insert(to.end(), more.begin(), more.end()); }

Frame frame_of(const model::Vocab& vocab, PromptFormat format, std::span<const Message> messages) {
  if (format == PromptFormat::chat) return vocab.chat_frame(messages);
  const auto is_system = [](const Message& message) { return message.role == Role::system; };
  return Frame(messages.size() - as_size(std::ranges::count_if(messages, is_system)) + 1);
}

/// With a question that has no words yet.
Frame frame_before_question(const model::Vocab& vocab, const Conversation& c) {
  return frame_of(vocab, c.format, c.with_question("").messages);
}

/// The template's own pieces hold control tokens; what the user wrote does not, unless it is asked for.
std::vector<Token> tokens_of(const model::Vocab& vocab, const std::string& piece) {
  return vocab.tokenize(piece, ControlTokens::parsed);
}

/// What stands between the text and a question in one message.
enum class Separator : std::uint8_t { none, blank_line };

/// Before a question that has words.
Separator separator(PromptFormat format, const std::string& text) {
  return format == PromptFormat::raw || text.empty() ? Separator::none : Separator::blank_line;
}

std::vector<Token> text_tokens(const model::Vocab& vocab, const Conversation& c, Separator after) {
  return vocab.tokenize(after == Separator::none ? c.text : c.text + "\n\n", c.control);
}

/// A message and what the template puts after it.
std::vector<Token> message_tokens(const model::Vocab& vocab, const std::string& content, const std::string& after,
                                  ControlTokens control) {
  std::vector<Token> out = vocab.tokenize(content, control);
  append(out, tokens_of(vocab, after));
  return out;
}

bool differ_in_space_only(std::string_view a, std::string_view b) {
  const auto end = [](std::string_view text) { return text.find_last_not_of(" \n\t") + 1; };
  return a.substr(0, end(a)) == b.substr(0, end(b));
}

/// Whether the frame of a conversation begins as it did one question ago. What led to the last answer then is what
/// stands before it now, but for a space, which many templates put before answers that are given to them and leave to
/// the model otherwise.
Past past_of(const Frame& before, const Frame& now) {
  const bool same = std::equal(before.begin(), before.end() - 1, now.begin()) &&
                    differ_in_space_only(before.back(), now[before.size() - 1]);
  return same ? Past::unchanged : Past::rewritten;
}

/// Refuses a text that is far too long for the model before time and memory go into its tokens.
void check_length(const Model::Impl& model, std::size_t bytes) {
  const std::size_t least = model.vocab.least_tokens(bytes);
  if (least <= model.most_tokens) return;
  throw InputError(
      fmt::format("the prompt has {} bytes and so at least {} tokens: the model's context has {}, and no more than "
                  "{} are read",
                  bytes, least, model.info.context, model.most_tokens));
}

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
  const auto& vocab = impl_->vocab;
  const Frame frame = frame_before_question(vocab, c);
  const auto between = longest == 0 ? Separator::none : separator(c.format, c.text);
  Prompts out{vocab.opening(frame.front()), {}};
  append(out.text, text_tokens(vocab, c, between));
  for (const auto& question : questions)
    out.questions.push_back(message_tokens(vocab, question, frame.back(), c.control));
  return out;
}

std::vector<Token> Model::tokenize(const Conversation& c) const {
  const Message* const last = c.last();
  if (last != nullptr && last->role == Role::assistant)
    throw UsageError("a conversation that ends with an answer has no place for the next one");
  if (c.text.empty() && (last == nullptr || last->content.empty()))
    throw InputError("the prompt is empty: there is nothing to read");
  check_length(*impl_, c.text.size() + (last == nullptr ? 0 : last->content.size()));
  const auto& vocab = impl_->vocab;
  if (last == nullptr) {
    std::vector<Token> out = vocab.opening(frame_before_question(vocab, c).front());
    append(out, text_tokens(vocab, c, separator(c.format, c.text)));
    return out;
  }
  const Frame frame = frame_of(vocab, c.format, c.messages);
  std::vector<Token> out = vocab.opening(frame.front());
  auto after = frame.begin();
  bool text_is_there = false;
  for (const auto& message : c.messages) {
    const auto& [role, content] = std::tie(message.role, message.content);
    if (role == Role::system) continue;
    if (role == Role::user && !text_is_there) {
      append(out, text_tokens(vocab, c, content.empty() ? Separator::none : separator(c.format, c.text)));
      text_is_there = true;
    }
    append(out, message_tokens(vocab, content, *++after, c.control));
  }
  return out;
}

Turn Model::turn(const Conversation& read, const std::string& question) const {
  check_length(*impl_, question.size());
  const auto& vocab = impl_->vocab;
  const Frame frame = frame_of(vocab, read.format, read.with_question(question).messages);
  Turn turn;
  if (read.last() != nullptr) {
    std::vector<Message> asked = read.messages;  // up to the last question
    while (asked.back().role != Role::user) asked.pop_back();
    turn.past = past_of(frame_of(vocab, read.format, asked), frame);
    turn.tokens = tokens_of(vocab, frame[frame.size() - 2]);
  }
  append(turn.tokens, message_tokens(vocab, question, frame.back(), read.control));
  return turn;
}

std::vector<Token> Model::tokenize(std::string_view text) const {
  return impl_->vocab.tokenize(text, ControlTokens::as_text);
}

}  // namespace winnow
