// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chat.h>

namespace winnow::chat {

/// Restricts answers to `inputs.json_schema`, after thinking in tags.
void put_schema(common_chat_params& params, const common_chat_templates_inputs& inputs);

/// Sets the format of calls to that of with_plain_tools(), after thinking in tags, and after text unless calls are
/// required.
void put_plain_calls(common_chat_params& params, const common_chat_templates_inputs& inputs);

}  // namespace winnow::chat
