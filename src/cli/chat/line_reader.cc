// SPDX-License-Identifier: Apache-2.0
#include "cli/chat/line_reader.h"

#include <fcntl.h>
#include <histedit.h>
#include <langinfo.h>
#include <poll.h>
#include <spdlog/fmt/fmt.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cwchar>
#include <filesystem>
#include <iostream>

#include "base/as_size.h"
#include "cli/commands.h"
#include "winnow/error.h"

namespace winnow::cli {

namespace {

constexpr int kHistory = 1000;

/// The history's file; empty where there is no folder for it.
std::filesystem::path history_file() {
  const char* const state = std::getenv("XDG_STATE_HOME");
  const char* const home = std::getenv("HOME");
  std::filesystem::path folder;
  if (state != nullptr && state[0] == '/') {  // the specification has relative paths ignored
    folder = state;
  } else if (home != nullptr && home[0] != '\0') {
    folder = std::filesystem::path(home) / ".local/state";
  } else {
    return {};
  }
  return folder / "winnow" / "chat_history";
}

/// libedit reads characters, not bytes. A terminal outside of any UTF-8 locale most likely sends UTF-8 all the same.
void use_locale() {
  std::setlocale(LC_CTYPE, "");
  if (std::strcmp(nl_langinfo(CODESET), "UTF-8") != 0) std::setlocale(LC_CTYPE, "C.UTF-8");
}

/// Reads one byte of stdin. SIGINT is unblocked only while it waits, so that none is lost between testing the flag and
/// waiting. Returns what read() does: 1, 0 at the end, -1 when interrupted.
int next_byte(EditLine* edit, char& out) {
  sigset_t only;
  sigset_t before;
  sigemptyset(&only);
  sigaddset(&only, SIGINT);
  pthread_sigmask(SIG_BLOCK, &only, &before);
  pollfd input{STDIN_FILENO, POLLIN, 0};
  int ready = -1;
  while (!interrupted()) {
    ready = ppoll(&input, 1, nullptr, &before);
    if (ready > 0 || (ready < 0 && errno != EINTR)) break;
    if (!interrupted()) el_set(edit, EL_REFRESH);  // back from the background, or in a window of another size
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return ready > 0 ? static_cast<int>(read(STDIN_FILENO, &out, 1)) : -1;
}

/// Reads one character for libedit, whose own function continues after the first interruption.
int next_character(EditLine* edit, wchar_t* out) {
  std::mbstate_t state{};
  for (;;) {
    char byte = 0;
    const int got = next_byte(edit, byte);
    if (got <= 0) return got;
    const std::size_t n = std::mbrtowc(out, &byte, 1, &state);
    if (n == as_size(-1)) state = {};  // no character: passed over
    if (n <= 1) return 1;
  }
}

class EditedLines : public LineReader {
 public:
  EditedLines() : out_(isatty(STDOUT_FILENO) != 0 ? stdout : stderr), path_(history_file()) {
    use_locale();
    edit_.reset(el_init("winnow", stdin, out_, stderr));
    history_.reset(history_init());
    HistEvent event;
    history(history_.get(), &event, H_SETSIZE, kHistory);
    history(history_.get(), &event, H_SETUNIQUE, 1);
    if (!path_.empty()) history(history_.get(), &event, H_LOAD, path_.c_str());
    el_set(edit_.get(), EL_PROMPT, prompt);
    el_set(edit_.get(), EL_EDITOR, "emacs");
    el_set(edit_.get(), EL_HIST, ::history, history_.get());
    el_set(edit_.get(), EL_SIGNAL, 1);  // a signal puts the terminal back
    el_set(edit_.get(), EL_GETCFN, next_character);
    el_set(edit_.get(), EL_BIND, "^R", "em-inc-search-prev", nullptr);
    el_source(edit_.get(), nullptr);
  }

  std::optional<std::string> next() override {
    if (!first_) std::fputc('\n', out_);
    first_ = false;
    int n = 0;
    const char* const line = el_gets(edit_.get(), &n);
    if (line == nullptr || n <= 0) {
      std::fputs("\n", out_);
      return interrupted() ? std::optional<std::string>("") : std::nullopt;
    }
    std::string text(line, as_size(n));
    while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
    if (!text.empty()) remember(text);
    return text;
  }

 private:
  struct End {
    void operator()(EditLine* edit) const { el_end(edit); }
    void operator()(History* history) const { history_end(history); }
  };

  static const char* prompt(EditLine* /*edit*/) { return "> "; }

  /// Failing to write the history is no error.
  void remember(const std::string& line) {
    HistEvent event;
    history(history_.get(), &event, H_ENTER, line.c_str());
    if (path_.empty()) return;
    std::error_code error;
    std::filesystem::create_directories(path_.parent_path(), error);
    const mode_t mask = umask(077);  // questions are private
    history(history_.get(), &event, H_SAVE, path_.c_str());
    umask(mask);
  }

  std::FILE* out_;
  std::filesystem::path path_;
  std::unique_ptr<EditLine, End> edit_;
  std::unique_ptr<History, End> history_;
  bool first_ = true;
};

class PlainLines : public LineReader {
 public:
  std::optional<std::string> next() override {
    std::string line;
    if (!std::getline(std::cin, line)) {
      if (std::ferror(stdin) != 0) throw InputError(fmt::format("cannot read stdin: {}", std::strerror(errno)));
      return std::nullopt;
    }
    if (!line.empty() && line.back() == '\r') line.pop_back();
    return line;
  }
};

}  // namespace

void check_stdin() {
  struct stat info {};
  if (fstat(STDIN_FILENO, &info) != 0) throw InputError(fmt::format("cannot read stdin: {}", std::strerror(errno)));
  if (S_ISDIR(info.st_mode)) throw InputError("cannot read stdin: it is a folder");
  if ((fcntl(STDIN_FILENO, F_GETFL) & O_ACCMODE) == O_WRONLY)
    throw InputError("cannot read stdin: it is closed, or was opened to be written");
}

std::unique_ptr<LineReader> edited_lines() { return std::make_unique<EditedLines>(); }
std::unique_ptr<LineReader> plain_lines() { return std::make_unique<PlainLines>(); }

}  // namespace winnow::cli
