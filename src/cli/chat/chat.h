// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/options.h"
#include "cli/texts.h"
#include "winnow/chat.h"
#include "winnow/sampling.h"

namespace winnow::cli {

/// Options of `winnow chat`, after all checks that need no model.
struct ChatOptions : CommonOptions {
  SamplingChoice sampling;  ///< chosen options; the others are the model's
  Protocol protocol = Protocol::aware;
  TextChoice texts;
};

/// `winnow chat`: a conversation whose lines come from a terminal or from stdin. Throws winnow::Error.
void chat_command(ChatOptions options);

/// The method of a conversation without a fixed end. `auto` is the recommended one for the protocol.
Spec endless_spec(const std::string& text, Protocol protocol);

/// The state that chat commands can read and change.
struct ChatState {
  Chat& chat;
  std::optional<Reply> last;  ///< to the last line that was answered
};

/// The number of tokens in a conversation's cache, as /stats and /save count them, and its options, in a few words.
/// REQUIRES: it has a cache.
std::string resumed(const Chat& chat);

enum class AfterCommand : std::uint8_t { goes_on, ends };

/// A chat command, as /help lists it.
struct ChatCommandInfo {
  std::string name;       ///< `/kv`
  std::string arguments;  ///< `[SPEC [BUDGET]]`
  std::string effect;
};

std::vector<ChatCommandInfo> chat_commands();

/// Runs a line that begins with /. Writes to stderr. Throws winnow::Error; for an unknown command it names the most
/// similar ones.
AfterCommand run_chat_command(const std::string& line, ChatState& state);

}  // namespace winnow::cli
