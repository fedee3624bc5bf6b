// SPDX-License-Identifier: Apache-2.0
#include "cli/chat/history.h"

#include <sys/stat.h>

#include <cstdlib>

namespace winnow::cli {

namespace {

constexpr int kMostLines = 1000;

/// Path of the history file; empty if there is no folder for it.
std::filesystem::path history_file() {
  const char* const state = std::getenv("XDG_STATE_HOME");
  const char* const home = std::getenv("HOME");
  std::filesystem::path folder;
  if (state != nullptr && state[0] == '/') {  // the specification requires relative paths to be ignored
    folder = state;
  } else if (home != nullptr && home[0] != '\0') {
    folder = std::filesystem::path(home) / ".local/state";
  } else {
    return {};
  }
  return folder / "winnow" / "chat_history";
}

}  // namespace

TypedLines::TypedLines() : path_(history_file()), history_(history_init()) {
  HistEvent event;
  history(history_.get(), &event, H_SETSIZE, kMostLines);
  history(history_.get(), &event, H_SETUNIQUE, 1);
  if (!path_.empty()) history(history_.get(), &event, H_LOAD, path_.c_str());
}

void TypedLines::add(const std::string& line) {
  HistEvent event;
  history(history_.get(), &event, H_ENTER, line.c_str());
  if (path_.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(path_.parent_path(), error);
  const mode_t mask = umask(077);  // questions are private
  history(history_.get(), &event, H_SAVE, path_.c_str());
  umask(mask);
}

}  // namespace winnow::cli
