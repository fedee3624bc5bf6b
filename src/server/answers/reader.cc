// SPDX-License-Identifier: Apache-2.0
#include "server/answers/reader.h"

#include <string>
#include <utility>

namespace winnow::server {

namespace {

class TextReader : public AnswerReader {
 public:
  AnswerDelta take(std::string_view text) override { return {.text = std::string(text)}; }
  AnswerDelta finish() override { return {}; }
};

AnswerDelta delta_of(chat::Delta delta) {
  AnswerDelta out{.reasoning = std::move(delta.reasoning), .text = std::move(delta.content)};
  for (auto& [index, more] : delta.calls)
    out.add(CallDelta{index, std::move(more.id), std::move(more.name), std::move(more.arguments)});
  return out;
}

class FormatReader : public AnswerReader {
 public:
  explicit FormatReader(const chat::AnswerFormat& format) : reader_(format) {}

  AnswerDelta take(std::string_view text) override { return delta_of(reader_.add(text)); }
  AnswerDelta finish() override { return delta_of(reader_.end()); }

 private:
  chat::AnswerReader reader_;
};

}  // namespace

std::unique_ptr<AnswerReader> text_reader() { return std::make_unique<TextReader>(); }

std::unique_ptr<AnswerReader> format_reader(const chat::AnswerFormat& format) {
  return std::make_unique<FormatReader>(format);
}

}  // namespace winnow::server
