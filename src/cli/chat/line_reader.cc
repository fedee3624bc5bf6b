// SPDX-License-Identifier: Apache-2.0
#include "cli/chat/line_reader.h"

#include <fcntl.h>
#include <spdlog/fmt/fmt.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>

#include "winnow/error.h"

namespace winnow::cli {

namespace {

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
    throw InputError("cannot read stdin: it is closed, or open only for writing");
}

std::unique_ptr<LineReader> plain_lines() { return std::make_unique<PlainLines>(); }

}  // namespace winnow::cli
