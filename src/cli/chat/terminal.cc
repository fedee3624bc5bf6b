// SPDX-License-Identifier: Apache-2.0
#include "cli/chat/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cwchar>

#include "base/as_size.h"

namespace winnow::cli {

namespace {

constexpr int kTab = 8;

/// False for a terminal that would print control sequences as text.
bool knows_sequences() {
  const char* const kind = std::getenv("TERM");
  return kind != nullptr && std::string_view(kind) != "dumb";
}

}  // namespace

int screen_columns(std::FILE* out) {
  winsize size{};
  const bool says = ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return says ? size.ws_col : 80;
}

int last_row(std::wstring_view text, int columns) {
  int row = 0;
  int column = 0;
  for (const wchar_t c : text) {
    if (c == L'\n') {
      ++row;
      column = 0;
      continue;
    }
    const int width = c == L'\t' ? kTab - column % kTab : std::max(wcwidth(c), 0);
    if (column + width > columns) {  // a wide character must not cross the edge
      ++row;
      column = 0;
    }
    column += width;
  }
  return row + column / columns;
}

std::string cut_to(const std::string& text, int columns) {
  if (static_cast<int>(text.size()) <= columns) return text;
  return columns < 4 ? "" : text.substr(0, as_size(columns - 3)) + "...";
}

MarkedPastes::MarkedPastes(std::FILE* out) : out_(knows_sequences() ? out : nullptr) {
  if (out_ != nullptr) std::fputs("\033[?2004h", out_);
}

MarkedPastes::~MarkedPastes() {
  if (out_ == nullptr) return;
  std::fputs("\033[?2004l", out_);
  std::fflush(out_);
}

}  // namespace winnow::cli
