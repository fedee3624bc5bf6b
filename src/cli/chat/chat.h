// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/options.h"
#include "winnow/chat.h"
#include "winnow/sampling.h"

namespace winnow::cli {

/// The options of `winnow chat`, after all checks that need no model.
struct ChatOptions : CommonOptions {
  SamplingChoice sampling;  ///< the rest is the model's
};

/// `winnow chat`: a conversation whose lines come from a terminal or from stdin. Throws winnow::Error.
void chat_command(ChatOptions options);

/// The method of a conversation, which may have no end: `auto` is what is recommended for questions that come later.
Spec endless_spec(const std::string& text);

/// Everything that a command may look at and change.
struct ChatState {
  Chat& chat;
  std::optional<Reply> last;  ///< of the last line that was answered
};

/// The tokens that a conversation's cache has read, as /stats and /save count them, and how, in a few words. REQUIRES:
/// it has a cache.
std::string resumed(const Chat& chat);

enum class AfterCommand : std::uint8_t { goes_on, ends };

/// A command of a conversation, as /help lists it.
struct ChatCommandInfo {
  std::string name;       ///< `/kv`
  std::string arguments;  ///< `[SPEC [BUDGET]]`
  std::string effect;
};

std::vector<ChatCommandInfo> chat_commands();

/// Runs the command of a line that begins with /. Its output goes to stderr. Throws winnow::Error; an unknown command
/// names the most similar ones.
AfterCommand run_chat_command(const std::string& line, ChatState& state);

}  // namespace winnow::cli
