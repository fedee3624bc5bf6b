// From words to tokens: prompts and conversations.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "engine/model_impl.h"
#include "winnow/error.h"

namespace winnow {

namespace {

/// What stands before, between and after the messages of a conversation.
using Frame = std::vector<std::string>;

void append(std::vector<Token>& to, const std::vector<Token>& more) { to.insert(to.end(), more.begin(), more.end()); }

Frame frame_of(const model::Vocab& vocab, PromptFormat format, const std::string& system, std::size_t questions) {
  if (format == PromptFormat::chat) return vocab.chat_frame(system, static_cast<int>(questions));
  return Frame(2 * questions);
}

/// The template's own pieces hold control tokens; what the user wrote does not, unless it is asked for.
std::vector<Token> tokens_of(const model::Vocab& vocab, const std::string& piece) {
  return vocab.tokenize(piece, ControlTokens::parsed);
}

/// The tokens that a prompt begins with: BOS, and what the template puts before the first message.
std::vector<Token> opening(const model::Vocab& vocab, const std::string& before) {
  std::vector<Token> out = vocab.beginning();
  const auto tokens = tokens_of(vocab, before);
  if (!tokens.empty() && out == std::vector<Token>{tokens.front()}) out.clear();  // a template may open with BOS itself
  append(out, tokens);
  return out;
}

/// What stands between the text and a question in one message.
enum class Separator : std::uint8_t { none, blank_line };

Separator separator(PromptFormat format, const std::string& text, const std::string& question) {
  return format == PromptFormat::raw || text.empty() || question.empty() ? Separator::none : Separator::blank_line;
}

/// What a prompt is before its first question.
std::vector<Token> beginning(const model::Vocab& vocab, const std::string& before, const std::string& text,
                             Separator between, ControlTokens control) {
  std::vector<Token> out = opening(vocab, before);
  append(out, vocab.tokenize(between == Separator::none ? text : text + "\n\n", control));
  return out;
}

std::vector<Token> question_tokens(const model::Vocab& vocab, const std::string& question, const std::string& after,
                                   ControlTokens control) {
  std::vector<Token> out = vocab.tokenize(question, control);
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
      fmt::format("the prompt has {} bytes and so at least {} tokens: the model was trained with {}, and no more than "
                  "{} are read",
                  bytes, least, model.info.ctx_train, model.most_tokens));
}

}  // namespace

Prompt Model::tokenize(const PromptText& prompt) const {
  if (prompt.text.empty() && prompt.question.empty())
    throw InputError("the prompt is empty: give a text (-f), a question (-p) or both");
  check_length(*impl_, prompt.text.size() + prompt.question.size());
  const auto& vocab = impl_->vocab;
  const Frame frame = frame_of(vocab, prompt.format, prompt.system, 1);
  const auto between = separator(prompt.format, prompt.text, prompt.question);
  return {beginning(vocab, frame.front(), prompt.text, between, prompt.control),
          question_tokens(vocab, prompt.question, frame.back(), prompt.control)};
}

std::vector<Token> Model::tokenize(const Conversation& c) const {
  const bool asks = !c.said.empty();
  if (asks && c.said.size() % 2 == 0)
    throw UsageError("a conversation that ends with an answer has no place for the next one");
  const std::string& last = asks ? c.said.back() : c.text;
  if (c.text.empty() && last.empty()) throw InputError("the prompt is empty: there is nothing to read");
  check_length(*impl_, c.text.size() + last.size());
  const auto& vocab = impl_->vocab;
  const Frame frame = frame_of(vocab, c.format, c.system, c.said.size() / 2 + 1);
  std::vector<Token> out = beginning(vocab, frame.front(), c.text,
                                     separator(c.format, c.text, asks ? c.said.front() : "any question"), c.control);
  for (std::size_t i = 0; i < c.said.size(); ++i)
    append(out, question_tokens(vocab, c.said[i], frame[i + 1], c.control));
  return out;
}

Turn Model::turn(const Conversation& read, const std::string& question) const {
  const auto& vocab = impl_->vocab;
  const std::size_t asked = (read.said.size() + 1) / 2;
  const Frame frame = frame_of(vocab, read.format, read.system, asked + 1);
  Turn turn;
  if (asked > 0) {
    turn.past = past_of(frame_of(vocab, read.format, read.system, asked), frame);
    turn.tokens = tokens_of(vocab, frame[2 * asked]);
  }
  append(turn.tokens, question_tokens(vocab, question, frame.back(), read.control));
  return turn;
}

std::vector<Token> Model::tokenize(std::string_view text) const {
  return impl_->vocab.tokenize(text, ControlTokens::as_text);
}

}  // namespace winnow
