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

/// The next part of an answer: reasoning, then content.
struct AnswerPart {
  std::string_view reasoning;
  std::string_view content;
};

using OnAnswerPart = std::function<void(const AnswerPart&)>;

/// Splits an answer into reasoning and content while it arrives, by the format of the model's chat template.
class WINNOW_EXPORT AnswerSplitter {
 public:
  /// Splits the answer to a conversation as Model::tokenize() writes it. Throws UsageError if the template cannot
  /// render it.
  AnswerSplitter(const Model& model, const Conversation& asked);
  AnswerSplitter(AnswerSplitter&&) noexcept;
  ~AnswerSplitter();

  /// Returns the options, with the format's control tokens preserved.
  GenerateOptions with_format(GenerateOptions options) const;

  /// Takes the next bytes. The part is valid until the next call.
  AnswerPart add(std::string_view bytes);
  /// Returns the rest when the answer has ended. Valid as long as the splitter.
  AnswerPart end();
  /// The answer so far.
  const Message& message() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace winnow
