// SPDX-License-Identifier: Apache-2.0
// Any lines as a conversation: each is refused with an Error, or does what it says, and the next ones go on from there.
// It takes place in a folder of its own, and commands name files of that folder alone.
#include <cstdio>
#include <filesystem>
#include <sstream>
#include <string>

#include "base/log.h"
#include "cli/chat/chat.h"
#include "fuzz/seed_model.h"
#include "support/temp.h"
#include "winnow/error.h"

namespace {

using winnow::cli::AfterCommand;

winnow::Session& session() {
  static winnow::Session one(winnow::test::seed_model(), {1, winnow::Precision::automatic, 512});
  return one;
}

/// What is printed is not looked at; what is written stays in the folder.
void enter_folder() {
  static const winnow::test::TempFolder folder;
  std::filesystem::current_path(folder.path());
  static const bool silent = std::freopen("/dev/null", "w", stdout) != nullptr;
  if (!silent) std::abort();
}

bool names_a_path(const std::string& line) { return line.find_first_of("/.", 1) != std::string::npos; }

AfterCommand take(const std::string& line, winnow::cli::ChatState& state) {
  if (line.front() != '/') {
    state.last = state.chat.say(line, {});
    state.chat.compress_turn();
    return AfterCommand::goes_on;
  }
  return names_a_path(line) ? AfterCommand::goes_on : winnow::cli::run_chat_command(line, state);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  winnow::set_verbosity(winnow::Verbosity::quiet);
  enter_folder();
  winnow::cli::CommonOptions options;
  options.generate.max_tokens = 2;
  winnow::Chat chat(session(), {}, options.cache, options.generate);
  winnow::cli::ChatState state{chat, {}};
  std::istringstream lines(std::string(data, size));
  for (std::string line; std::getline(lines, line);) {
    try {
      if (!line.empty() && take(line, state) == AfterCommand::ends) break;
    } catch (const winnow::Error&) {
    }
  }
  return 0;
}
