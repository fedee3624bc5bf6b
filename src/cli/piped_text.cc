// SPDX-License-Identifier: Apache-2.0
#include "cli/piped_text.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/format.h"
#include "base/log.h"
#include "base/text_input.h"
#include "base/text_kind.h"
#include "cli/commands.h"

namespace winnow::cli {

namespace {

constexpr double kPatienceMs = 2000;

bool may_have_text() {
  struct stat info {};
  return fstat(STDIN_FILENO, &info) == 0 && (S_ISREG(info.st_mode) || S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode));
}

}  // namespace

std::string piped_text() {
  if (!may_have_text()) return {};
  const auto begin = Clock::now();
  bool told = false;
  TextInput input("-", [&] {
    if (!told && ms_since(begin) > kPatienceMs) {
      log().warn("stdin is still open: it is read to its end as the text (-f FILE or </dev/null: it is not read)");
      told = true;
    }
    return interrupted();
  });
  std::string out = input.read_all();
  if (out.empty()) return out;
  check_text(out, input.name());
  log().info("the text is what came on stdin, {}", format_bytes(out.size()));
  return out;
}

}  // namespace winnow::cli
