// SPDX-License-Identifier: Apache-2.0
#include <histedit.h>
#include <langinfo.h>
#include <poll.h>
#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <cwchar>
#include <utility>

#include "base/as_size.h"
#include "cli/chat/history.h"
#include "cli/chat/line_reader.h"
#include "cli/chat/terminal.h"
#include "cli/commands.h"

namespace winnow::cli {

namespace {

/// A character that no key produces. It makes libedit show the hint again.
constexpr wchar_t kHintKey = 0x9c;
constexpr std::wstring_view kPasteEnd = L"\033[201~";

/// libedit reads characters, not bytes. Outside of UTF-8 locales, assumes that the terminal sends UTF-8.
void use_locale() {
  std::setlocale(LC_CTYPE, "");
  if (std::strcmp(nl_langinfo(CODESET), "UTF-8") != 0) std::setlocale(LC_CTYPE, "C.UTF-8");
}

/// A line editor on a terminal, by libedit.
class EditedLines : public LineReader {
 public:
  explicit EditedLines(const TypingHelp& help) : help_(help), out_(isatty(STDOUT_FILENO) != 0 ? stdout : stderr) {
    use_locale();
    std::signal(SIGWINCH, [](int) {});  // interrupts waiting; libedit's own handler is removed after its first signal
    edit_.reset(el_init("winnow", stdin, out_, stderr));
    el_set(edit_.get(), EL_CLIENTDATA, this);
    el_set(edit_.get(), EL_PROMPT, &prompt);
    el_set(edit_.get(), EL_RPROMPT, &shown_hint);
    el_set(edit_.get(), EL_EDITOR, "emacs");
    el_set(edit_.get(), EL_HIST, ::history, typed_.get());
    el_set(edit_.get(), EL_SIGNAL, 1);  // restores the terminal after a signal
    el_set(edit_.get(), EL_GETCFN, &next_character);
    el_set(edit_.get(), EL_BIND, "^R", "em-inc-search-prev", nullptr);
    el_source(edit_.get(), nullptr);  // the user's keys; those below belong to this program
    add_key("\\e[200~", "winnow-paste", "Inserts pasted text", &paste);
    add_key("\\e\\r", "winnow-new-line", "Begins a new line of the same turn", &new_line);
    add_key("\\e\\n", "winnow-new-line", "Begins a new line of the same turn", &new_line);
    add_key("\\t", "winnow-complete", "Completes a command, its argument or a path", &complete);
    add_key("\\234", "winnow-hint", "Explains the line", &refresh);
  }

  std::optional<std::string> next() override {
    if (!first_) std::fputc('\n', out_);
    first_ = false;
    const MarkedPastes pastes(out_);
    std::string turn;
    prompt_ = "> ";
    for (;;) {
      const auto line = edited();
      if (!line) return interrupted() ? std::optional<std::string>("") : std::nullopt;
      turn += *line;
      if (!turn.ends_with('\\')) break;
      turn.back() = '\n';
      prompt_ = ". ";
    }
    if (!turn.empty()) typed_.add(turn);
    return turn;
  }

 private:
  struct End {
    void operator()(EditLine* edit) const { el_end(edit); }
  };

  static EditedLines& of(EditLine* edit) {
    void* self = nullptr;
    el_get(edit, EL_CLIENTDATA, &self);
    return *static_cast<EditedLines*>(self);
  }

  void add_key(const char* keys, const char* name, const char* effect, unsigned char (*run)(EditLine*, int)) {
    el_set(edit_.get(), EL_ADDFN, name, effect, run);
    el_set(edit_.get(), EL_BIND, keys, name, nullptr);
  }

  /// Reads one line without its newline; empty at the end of the input or after Ctrl-C.
  std::optional<std::string> edited() {
    int n = 0;
    hint_.clear();
    columns_ = screen_columns(out_);
    el_resize(edit_.get());
    const char* const line = el_gets(edit_.get(), &n);
    if (line == nullptr || n <= 0) {
      std::fputs("\n", out_);
      return std::nullopt;
    }
    std::string text(line, as_size(n));
    while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
    return text;
  }

  // Callbacks of libedit.

  static const char* prompt(EditLine* edit) { return of(edit).prompt_; }
  static const char* shown_hint(EditLine* edit) { return of(edit).hint_.c_str(); }

  /// Reads one character, byte by byte. libedit's own function continues after the first interruption.
  static int next_character(EditLine* edit, wchar_t* out) {
    EditedLines& self = of(edit);
    if (self.update_hint()) {
      *out = kHintKey;
      return 1;
    }
    std::mbstate_t state{};
    for (;;) {
      char byte = 0;
      const int got = self.next_byte(byte);
      if (got <= 0) return got;
      const std::size_t n = std::mbrtowc(out, &byte, 1, &state);
      if (n == static_cast<std::size_t>(-1)) state = {};  // invalid bytes are skipped
      if (n <= 1) return self.take_down_hint(out);
    }
  }

  static unsigned char paste(EditLine* edit, int /*key*/) {
    std::wstring text;
    while (!text.ends_with(kPasteEnd)) {
      wchar_t c = 0;
      if (el_wgetc(edit, &c) <= 0) return CC_EOF;
      if (c != L'\0') text += c == L'\r' ? L'\n' : c;
    }
    text.resize(text.size() - kPasteEnd.size());
    el_winsertstr(edit, text.c_str());
    return CC_REFRESH;
  }

  static unsigned char new_line(EditLine* edit, int /*key*/) {
    el_winsertstr(edit, L"\n");
    return CC_REFRESH;
  }

  static unsigned char refresh(EditLine* /*edit*/, int /*key*/) { return CC_REFRESH; }

  static unsigned char complete(EditLine* edit, int key) {
    EditedLines& self = of(edit);
    const std::string line = self.until_cursor();
    if (self.help_.is_path(line)) return _el_fn_complete(edit, key);
    const auto words = self.help_.completions(line);
    if (words.empty()) return CC_ERROR;
    const std::size_t begun = line.size() - (line.find_last_of(' ') + 1);
    const std::string common = common_beginning(words) + (words.size() == 1 ? " " : "");
    if (common.size() > begun) {
      el_insertstr(edit, common.substr(begun).c_str());
      return CC_REFRESH;
    }
    self.list(words);
    return CC_NORM;
  }

  static std::string common_beginning(const std::vector<std::string>& words) {
    std::string common = words.front();
    for (const auto& word : words) {
      const auto end = std::mismatch(common.begin(), common.end(), word.begin(), word.end()).first;
      common.erase(end, common.end());
    }
    return common;
  }

  /// Shows `words` below the line, and the line again below them.
  void list(const std::vector<std::string>& words) {
    std::fprintf(out_, "\n%s\n", fmt::format("{}", fmt::join(words, "  ")).c_str());
    el_set(edit_.get(), EL_REFRESH);
  }

  std::string until_cursor() const {
    const LineInfo* const line = el_line(edit_.get());
    return {line->buffer, line->cursor};
  }

  /// Updates the hint, and returns true if it has changed and must be shown.
  bool update_hint() {
    pollfd input{STDIN_FILENO, POLLIN, 0};
    if (poll(&input, 1, 0) > 0) return false;  // the line is about to change
    const std::string line = until_cursor();
    std::string hint = cut_to(help_.hint(line), columns_ - static_cast<int>(line.size()) - 6);
    return std::exchange(hint_, std::move(hint)) != hint_;
  }

  /// Removes the hint from an entered line before it ends: if `out` ends the line, clears the hint first and pushes the
  /// end back for the next call.
  int take_down_hint(wchar_t* out) {
    if (hint_.empty() || (*out != L'\n' && *out != L'\r')) return 1;
    hint_.clear();
    el_wpush(edit_.get(), L"\n");
    *out = kHintKey;
    return 1;
  }

  /// Reads one byte of stdin. SIGINT is unblocked only while it waits, so that none is lost between testing the flag
  /// and waiting. Returns as read() does: 1, 0 at the end, -1 if interrupted.
  int next_byte(char& out) {
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
      if (!interrupted()) draw_anew();
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return ready > 0 ? static_cast<int>(read(STDIN_FILENO, &out, 1)) : -1;
  }

  /// Redraws the line after the program returns from the background, or after the window's width has changed, which
  /// makes the terminal wrap it differently.
  void draw_anew() {
    const int columns = screen_columns(out_);
    if (columns == columns_) {
      el_set(edit_.get(), EL_REFRESH);
      return;
    }
    columns_ = columns;
    hint_.clear();
    const LineInfoW* const line = el_wline(edit_.get());
    const int row = last_row(L"> " + std::wstring(line->buffer, line->cursor), columns);
    std::fputs(row > 0 ? fmt::format("\033[{}A\r\033[J", row).c_str() : "\r\033[J", out_);
    el_resize(edit_.get());
    el_set(edit_.get(), EL_REFRESH);  // draws at the cursor
  }

  const TypingHelp& help_;
  std::FILE* out_;
  TypedLines typed_;
  std::unique_ptr<EditLine, End> edit_;
  std::string hint_;  ///< at the right of the line
  const char* prompt_ = "> ";
  int columns_ = 80;  ///< of the terminal when the line was drawn
  bool first_ = true;
};

}  // namespace

std::unique_ptr<LineReader> edited_lines(const TypingHelp& help) { return std::make_unique<EditedLines>(help); }

}  // namespace winnow::cli
