// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chat.h>

namespace winnow::chat {

/// Makes answers be of `inputs.json_schema`, after thinking in tags.
void put_schema(common_chat_params& params, const common_chat_templates_inputs& inputs);

/// Makes calls be as with_plain_tools() tells them, after thinking in tags, and after words unless they are required.
void put_plain_calls(common_chat_params& params, const common_chat_templates_inputs& inputs);

}  // namespace winnow::chat
