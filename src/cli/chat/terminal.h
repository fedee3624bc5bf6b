// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace winnow::cli {

/// The columns of the terminal that `out` is; 80 where it does not say.
int screen_columns(std::FILE* out);

/// The row, counted from its first one, in which `text` ends on a screen of `columns` columns. It begins in column 0.
int last_row(std::wstring_view text, int columns);

/// `text`, or where it takes more than `columns` columns its beginning and an ellipsis.
std::string cut_to(const std::string& text, int columns);

/// While it lives, the terminal marks what is pasted, so that lines that were pasted can be told from lines that were
/// entered. A terminal that cannot do that ignores it.
class MarkedPastes {
 public:
  explicit MarkedPastes(std::FILE* out);
  ~MarkedPastes();
  MarkedPastes(const MarkedPastes&) = delete;
  MarkedPastes& operator=(const MarkedPastes&) = delete;

 private:
  std::FILE* out_;  ///< null for a terminal without control sequences
};

}  // namespace winnow::cli
