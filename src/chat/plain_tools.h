// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace winnow::chat {

/// Place of system messages in a template.
enum class SystemRole : std::uint8_t { own_message, users_message };

/// The form in which a template expects the content of a message.
enum class Contents : std::uint8_t { texts, parts };

/// The value of `tools` that a template expects if there are none.
enum class NoTools : std::uint8_t { none, undefined };

/// The forms in which a template expects its values.
struct Taken {
  SystemRole system;
  Contents contents;
  NoTools no_tools;
};

/// A template without calls, preceded by code that renders tools as text: descriptions in the system's message, calls
/// in the assistant's and results in the user's, as in Hermes models.
std::string with_plain_tools(const std::string& source, const Taken& taken);

}  // namespace winnow::chat
