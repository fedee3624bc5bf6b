// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <histedit.h>

#include <filesystem>
#include <memory>
#include <string>

namespace winnow::cli {

/// Earlier lines, in a file of the user's state folder if it is writable. Errors of reading or writing it are ignored.
class TypedLines {
 public:
  TypedLines();
  void add(const std::string& line);
  /// For libedit, which navigates it.
  History* get() const { return history_.get(); }

 private:
  struct End {
    void operator()(History* history) const { history_end(history); }
  };

  std::filesystem::path path_;  ///< empty if there is no folder for it
  std::unique_ptr<History, End> history_;
};

}  // namespace winnow::cli
