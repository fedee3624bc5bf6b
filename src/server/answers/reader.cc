// SPDX-License-Identifier: Apache-2.0
#include "server/answers/reader.h"

#include <tuple>
#include <utility>

namespace winnow::server {

namespace {

class TextReader : public AnswerReader {
 public:
  AnswerPiece take(std::string_view text) override { return {.text = std::string(text)}; }
  AnswerPiece finish() override { return {}; }
};

/// What a text has got beyond what was told of it. A parser that has thought otherwise of what was told adds nothing.
std::string added(std::string& told, const std::string& now) {
  if (!now.starts_with(told)) return {};
  std::string out = now.substr(told.size());
  told += out;
  return out;
}

class MessageReader : public AnswerReader {
 public:
  explicit MessageReader(AnswerParser parse) : parse_(std::move(parse)) {}

  AnswerPiece take(std::string_view text) override {
    text_ += text;
    return difference(parse_(text_, AnswerExtent::partial));
  }
  AnswerPiece finish() override { return difference(parse_(text_, AnswerExtent::whole)); }

 private:
  AnswerPiece difference(const Message& now) {
    AnswerPiece out{.reasoning = added(told_.reasoning, now.reasoning), .text = added(told_.content, now.content)};
    for (std::size_t i = 0; i < now.calls.size(); ++i) {
      const bool begins = i == told_.calls.size();
      if (begins) told_.calls.push_back({now.calls[i].id, now.calls[i].name, {}});
      CallPiece piece{.index = i, .arguments = added(told_.calls[i].arguments, now.calls[i].arguments)};
      if (begins) std::tie(piece.id, piece.name) = std::tie(now.calls[i].id, now.calls[i].name);
      if (begins || !piece.arguments.empty()) out.calls.push_back(std::move(piece));
    }
    return out;
  }

  AnswerParser parse_;
  std::string text_;
  Message told_;
};

}  // namespace

std::unique_ptr<AnswerReader> text_reader() { return std::make_unique<TextReader>(); }

std::unique_ptr<AnswerReader> message_reader(AnswerParser parse) {
  return std::make_unique<MessageReader>(std::move(parse));
}

}  // namespace winnow::server
