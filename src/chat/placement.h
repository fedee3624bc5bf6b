// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "model/marked_text.h"
#include "winnow/conversation.h"

namespace winnow::chat {

constexpr std::size_t kNowhere = std::numeric_limits<std::size_t>::max();

/// The byte at which the content of each message begins in what a template has written; templates may cut the white
/// space around it, and the system's messages may go before the others. kNowhere: the content is empty or white space.
/// Throws TemplateError, which names the message that is not there.
std::vector<std::size_t> places_of(std::span<const Message> messages, const model::MarkedText& text);

}  // namespace winnow::chat
