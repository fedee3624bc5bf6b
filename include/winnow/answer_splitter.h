// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "winnow/conversation.h"
#include "winnow/export.h"
#include "winnow/generate.h"
#include "winnow/model.h"

namespace winnow {

/// A part of an answer that has come since the last one: thinking before what is said.
struct AnswerPart {
  std::string_view reasoning;
  std::string_view content;
};

using OnAnswerPart = std::function<void(const AnswerPart&)>;

/// Splits an answer into what a model has thought and what it says, by the format of the model's chat template, while
/// the answer comes.
class WINNOW_EXPORT AnswerSplitter {
 public:
  /// For the answer to a conversation, as Model::tokenize() writes it. Throws UsageError where the template cannot.
  AnswerSplitter(const Model& model, const Conversation& asked);
  AnswerSplitter(AnswerSplitter&&) noexcept;
  ~AnswerSplitter();

  /// Has answers keep what the format needs: the names of control tokens that are part of it.
  GenerateOptions with_format(GenerateOptions options) const;

  /// Takes the next bytes. The part is valid until the next call.
  AnswerPart add(std::string_view bytes);
  /// Returns what is left when the answer has ended. Valid as long as the splitter.
  AnswerPart end();
  /// The answer so far.
  const Message& message() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace winnow
