// SPDX-License-Identifier: Apache-2.0
#include "chat/answer_format.h"

#include <utility>

#include "base/utf8.h"
#include "chat/answer_parser.h"

namespace winnow::chat {

namespace {

/// Length at which an answer is parsed again. Longer answers are parsed less often, so that the time is not quadratic
/// in the length. The lengths do not depend on the chunks.
constexpr std::size_t after(std::size_t length) { return length + 1 + length / 512; }

/// The same for a text that did not have the format, and is unlikely to get it.
constexpr std::size_t after_failure(std::size_t length) { return length + 1 + length / 16; }

bool is_inside_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80; }

/// The part of `read` after `sent`; empty if it does not begin with it.
std::string_view rest(const std::string& read, const std::string& sent) {
  return read.starts_with(sent) ? std::string_view(read).substr(sent.size()) : std::string_view();
}

}  // namespace

Message AnswerFormat::parse(std::string_view text) const {
  if (parser != nullptr) {
    if (auto read = parser->parse(as_utf8(text), Extent::whole)) return std::move(*read);
  }
  // The message that a stream of the text would give.
  AnswerReader reader(*this);
  reader.add(text);
  reader.end();
  return reader.message();
}

AnswerReader::AnswerReader(AnswerFormat format) : format_(std::move(format)) { sent_.role = Role::assistant; }

Delta AnswerReader::add(std::string_view text) {
  Delta out;
  const auto join = [&out](Delta more) {
    out.reasoning += more.reasoning;
    out.content += more.content;
    for (auto& call : more.calls) {
      if (!out.calls.empty() && out.calls.back().index == call.index) {
        out.calls.back().more.arguments += call.more.arguments;
      } else {
        out.calls.push_back(std::move(call));
      }
    }
  };
  if (format_.parser == nullptr) {
    sent_.content += text;
    return {{}, std::string(text), {}};
  }
  held_ += text;
  const std::size_t whole = held_.size() - unfinished_character(held_);
  text_ += as_utf8(std::string_view(held_).substr(0, whole));
  held_.erase(0, whole);
  while (next_ <= text_.size()) {
    while (next_ < text_.size() && is_inside_character(text_[next_])) ++next_;
    const auto length = next_;
    next_ = after_failure(length);
    const auto read = format_.parser->parse(std::string_view(text_).substr(0, length), Extent::partial);
    if (!read) continue;
    next_ = after(length);
    read_ = length;
    join(advance_to(*read, read->calls.empty() ? 0 : read->calls.size() - 1));
  }
  return out;
}

Delta AnswerReader::end() {
  if (format_.parser == nullptr) return {};
  text_ += as_utf8(std::exchange(held_, {}));
  auto read = format_.parser->parse(text_, Extent::whole);
  if (!read) {
    // Either all text sent so far is a prefix of the whole, or the part that cannot be parsed follows it.
    read = sent_;
    if (sent_ == Message{Role::assistant, sent_.content} && text_.starts_with(sent_.content)) {
      read->content = text_;
    } else {
      read->content += std::string_view(text_).substr(read_);
    }
  }
  return advance_to(*read, read->calls.size());
}

/// Returns the delta since the last call. Calls before `whole_calls` are complete; an incomplete call's name may still
/// grow until its arguments begin.
Delta AnswerReader::advance_to(const Message& read, std::size_t whole_calls) {
  Delta out{std::string(rest(read.reasoning, sent_.reasoning)), std::string(rest(read.content, sent_.content)), {}};
  sent_.reasoning += out.reasoning;
  sent_.content += out.content;
  for (std::size_t i = 0; i < read.calls.size(); ++i) {
    const auto& call = read.calls[i];
    if (i >= sent_.calls.size()) {
      if (i >= whole_calls && call.arguments.empty()) break;
      sent_.calls.push_back({call.id, call.name, {}});
      out.calls.push_back({i, sent_.calls.back()});
    }
    const std::string more(rest(call.arguments, sent_.calls[i].arguments));
    if (more.empty()) continue;
    if (out.calls.empty() || out.calls.back().index != i) out.calls.push_back({i, {}});
    out.calls.back().more.arguments += more;
    sent_.calls[i].arguments += more;
  }
  return out;
}

}  // namespace winnow::chat
