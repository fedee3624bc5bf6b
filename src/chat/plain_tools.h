// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace winnow::chat {

/// Where a template puts what the system says.
enum class SystemRole : std::uint8_t { own_message, users_message };

/// The form in which a template takes the content of a message.
enum class Contents : std::uint8_t { texts, parts };

/// A template that knows no tools, with what makes texts of them before it: descriptions in the system's message, calls
/// in the assistant's and results in the user's, as Hermes models have them.
std::string with_plain_tools(const std::string& source, SystemRole system, Contents contents);

}  // namespace winnow::chat
