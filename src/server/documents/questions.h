// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "documents/document.h"
#include "server/answers/request.h"
#include "winnow/model.h"

namespace winnow::server {

using Documents = std::vector<std::shared_ptr<const documents::Document>>;

/// Throws ApiError unless a request can be asked over documents: a conversation of one user message with one text and
/// without tools, or prompts that the answer does not repeat.
void check_question(const AnswerRequest& request);

/// The tokens of the documents, followed by the question, which has the same tokens as in the command.
Prompt after_documents(const Model& model, std::span<const std::shared_ptr<const documents::Document>> documents,
                       Prompt prompt, const AnswerRequest& request);

}  // namespace winnow::server
