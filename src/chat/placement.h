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

/// A template that omits a message.
class LeftOut : public TemplateError {
 public:
  using TemplateError::TemplateError;
};

/// The text without surrounding white space.
std::string_view trimmed(std::string_view text);

/// The byte of a rendering at which the content of each message begins. Templates may trim the content, encode it as a
/// JSON string, put system messages before all others, and tool results in the order of their calls. kNowhere: the
/// content is empty or white space, or changed by the template in a permitted way: an assistant's text before calls,
/// and tool results. Ignores thinking and calls. Throws LeftOut, which names the missing message.
std::vector<std::size_t> places_of(std::span<const Message> messages, const model::MarkedText& text);

}  // namespace winnow::chat
