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

/// Throws ApiError unless a request is one that documents can be asked: a conversation of one message of the user with
/// one text and without tools, or prompts that are not told again.
void check_question(const AnswerRequest& request);

/// The tokens of the documents, and as its question those that the command would ask for the same prompt.
Prompt after_documents(const Model& model, std::span<const std::shared_ptr<const documents::Document>> documents,
                       Prompt prompt, const AnswerRequest& request);

}  // namespace winnow::server
