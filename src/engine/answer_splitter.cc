// SPDX-License-Identifier: Apache-2.0
#include "winnow/answer_splitter.h"

#include <utility>

#include "chat/answer_format.h"
#include "engine/wording.h"

namespace winnow {

struct AnswerSplitter::Impl {
  const Model& model;
  chat::AnswerFormat format;
  chat::AnswerReader reader;
  chat::Delta last = {};

  AnswerPart part_of(chat::Delta delta) {
    last = std::move(delta);
    return {last.reasoning, last.content};
  }
};

AnswerSplitter::AnswerSplitter(const Model& model, const Conversation& asked) {
  auto format = write(model, asked, chat::Ending::answer).answer;
  impl_.reset(new Impl{model, format, chat::AnswerReader(format)});
}

AnswerSplitter::AnswerSplitter(AnswerSplitter&&) noexcept = default;
AnswerSplitter::~AnswerSplitter() = default;

GenerateOptions AnswerSplitter::with_format(GenerateOptions options) const {
  demand(impl_->format, impl_->model, options);
  return options;
}

AnswerPart AnswerSplitter::add(std::string_view bytes) { return impl_->part_of(impl_->reader.add(bytes)); }
AnswerPart AnswerSplitter::end() { return impl_->part_of(impl_->reader.end()); }
const Message& AnswerSplitter::message() const { return impl_->reader.message(); }

}  // namespace winnow
