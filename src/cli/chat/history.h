// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <histedit.h>

#include <filesystem>
#include <memory>
#include <string>

namespace winnow::cli {

/// The lines that were typed before, in a file of the user's state folder where that can be written. A history that
/// cannot be read or written is no error: it is a comfort.
class TypedLines {
 public:
  TypedLines();
  void add(const std::string& line);
  /// For libedit, which walks through it.
  History* get() const { return history_.get(); }

 private:
  struct End {
    void operator()(History* history) const { history_end(history); }
  };

  std::filesystem::path path_;  ///< empty where there is no folder for it
  std::unique_ptr<History, End> history_;
};

}  // namespace winnow::cli
