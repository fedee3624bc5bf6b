// SPDX-License-Identifier: Apache-2.0
#include "cli/output.h"

#include <spdlog/fmt/fmt.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <span>

#include "base/printable.h"
#include "base/text_input.h"
#include "base/text_kind.h"
#include "cli/commands.h"
#include "winnow/error.h"

namespace winnow::cli {

namespace {

std::string printable_lines(std::string_view text) {
  std::string out;
  for (auto end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    out += printable(text.substr(0, end)) + "\n";
    text.remove_prefix(end + 1);
  }
  return out + printable(text);
}

}  // namespace

void show(std::string_view text) { write_stdout(printable_lines(text)); }
void tell(std::string_view text) { std::fputs(printable_lines(text).c_str(), stderr); }

void write_stdout(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    throw InputError(fmt::format("cannot write to stdout: {}", std::strerror(errno)));
  }
}

std::string read_file(const std::string& path) { return TextInput(path, interrupted).read_all(); }

std::string read_text(const std::string& path) {
  std::string out = read_file(path);
  check_text(out, path == "-" ? "stdin" : path);
  return out;
}

void write_file(const std::string& path, std::string_view text, const FileKind& kind) {
  ReplacingFile file(path, Readers::by_umask, kind);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

}  // namespace winnow::cli
