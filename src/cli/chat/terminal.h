// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace winnow::cli {

/// Number of columns of the terminal `out`; 80 if unknown.
int screen_columns(std::FILE* out);

/// The row in which `text` ends on a screen of `columns` columns, relative to its first row. It begins in column 0.
int last_row(std::wstring_view text, int columns);

/// `text`, or its beginning with an ellipsis if it takes more than `columns` columns.
std::string cut_to(const std::string& text, int columns);

/// Makes the terminal mark pasted text during its lifetime, to distinguish pasted lines from entered ones. Terminals
/// without this feature ignore it.
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
