// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/answers/plan.h"
#include "server/openai/fields.h"
#include "server/options.h"
#include "winnow/model.h"

namespace winnow::server {

/// Read the fields for the format of answers, in chats and in completions. Throw ApiError.
AnswerForm read_chat_form(Fields& fields);
AnswerForm read_completion_form(Fields& fields);
/// Reads the fields that control sharing of texts and order among requests.
void read_sharing(Fields& fields, AnswerForm& form);
/// Reads the fields for the content of answers: length, sampling, stops.
GenerateOptions read_generation(Fields& fields, const AnswerForm& form, const RequestDefaults& defaults,
                                const ModelInfo& model);

}  // namespace winnow::server
