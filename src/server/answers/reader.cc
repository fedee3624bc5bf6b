// SPDX-License-Identifier: Apache-2.0
#include "server/answers/reader.h"

#include <string>
#include <utility>

namespace winnow::server {

namespace {

class TextReader : public AnswerReader {
 public:
  AnswerPiece take(std::string_view text) override { return {.text = std::string(text)}; }
  AnswerPiece finish() override { return {}; }
};

AnswerPiece piece_of(chat::Delta delta) {
  AnswerPiece out{.reasoning = std::move(delta.reasoning), .text = std::move(delta.content)};
  for (auto& [index, more] : delta.calls)
    out.add(CallPiece{index, std::move(more.id), std::move(more.name), std::move(more.arguments)});
  return out;
}

class FormatReader : public AnswerReader {
 public:
  explicit FormatReader(const chat::AnswerFormat& format) : reader_(format) {}

  AnswerPiece take(std::string_view text) override { return piece_of(reader_.add(text)); }
  AnswerPiece finish() override { return piece_of(reader_.end()); }

 private:
  chat::AnswerReader reader_;
};

}  // namespace

std::unique_ptr<AnswerReader> text_reader() { return std::make_unique<TextReader>(); }

std::unique_ptr<AnswerReader> format_reader(const chat::AnswerFormat& format) {
  return std::make_unique<FormatReader>(format);
}

}  // namespace winnow::server
