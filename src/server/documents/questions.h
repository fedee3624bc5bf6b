// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "documents/document.h"
#include "server/openai/fields.h"
#include "server/openai/generation_fields.h"
#include "winnow/model.h"

namespace winnow::server {

using Documents = std::vector<std::shared_ptr<const documents::Document>>;

/// Throws ApiError unless a request is one that documents can be asked: in a chat, one message of the user with one
/// text; no echo.
void check_question(Fields& fields, const AnswerForm& form);

/// The tokens of the documents, and as its question those that the command would ask for the same prompt.
Prompt after_documents(const Model& model, std::span<const std::shared_ptr<const documents::Document>> documents,
                       Prompt prompt, Surface surface);

}  // namespace winnow::server
