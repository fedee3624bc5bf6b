// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "chat/template.h"
#include "model/marked_text.h"
#include "winnow/conversation.h"

namespace winnow::chat {

constexpr std::size_t kNowhere = std::numeric_limits<std::size_t>::max();

/// A template that does not put a message into its text.
class LeftOut : public TemplateError {
 public:
  using TemplateError::TemplateError;
};

/// Without white space around it.
std::string_view trimmed(std::string_view text);

/// The byte at which the content of each message begins in what a template has written. Templates may cut the white
/// space around it, put it into a JSON string, put the system's messages before the others, and the results of tools in
/// the order of their calls. kNowhere: the content is empty or white space, or the template has changed it as it may:
/// what an assistant says before calls, and results of tools. Thinking and calls are not looked for. Throws LeftOut,
/// which names the message that is not there.
std::vector<std::size_t> places_of(std::span<const Message> messages, const model::MarkedText& text);

}  // namespace winnow::chat
