// SPDX-License-Identifier: Apache-2.0
// Any lines as a conversation: each is refused with an Error or carried out, and the conversation goes on. It runs in a
// folder of its own; commands that name files outside it are skipped.
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

/// Discards printed text, and makes commands write into a temporary folder.
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
