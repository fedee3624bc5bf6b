// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace winnow::chat {

/// Where a template puts what the system says.
enum class SystemRole : std::uint8_t { own_message, users_message };

/// The form in which a template takes the content of a message.
enum class Contents : std::uint8_t { texts, parts };

/// The form in which a template takes it that there are no tools: as none, or only as a variable that is not there.
enum class NoTools : std::uint8_t { none, undefined };

/// How a template takes its values.
struct Taken {
  SystemRole system;
  Contents contents;
  NoTools no_tools;
};

/// A template that has no calls, with what makes texts of tools before it: descriptions in the system's message, calls
/// in the assistant's and results in the user's, as Hermes models have them.
std::string with_plain_tools(const std::string& source, const Taken& taken);

}  // namespace winnow::chat
