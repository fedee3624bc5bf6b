// SPDX-License-Identifier: Apache-2.0
#include "cli/jsonl/answers.h"

#include <fcntl.h>
#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/json.h"
#include "base/log.h"
#include "base/text_lines.h"
#include "winnow/error.h"

namespace winnow::cli {

namespace {

constexpr std::string_view kBegin = R"({"hash":")";
constexpr std::size_t kHashDigits = 16;

/// True if a line begins as answers do. A shorter line must be a prefix of such a beginning.
bool begins_as_answer(std::string_view line) {
  const auto hash = line.substr(std::min(line.size(), kBegin.size()), kHashDigits);
  if (hash.find_first_not_of("0123456789abcdef") != std::string_view::npos) return false;
  const std::string expected = fmt::format(R"({}{}","id":)", kBegin, hash);
  return expected.starts_with(line.substr(0, expected.size()));
}

enum class LineKind : std::uint8_t { answer, cut, foreign };

LineKind line_kind(const std::string& line) {
  if (!begins_as_answer(line)) return LineKind::foreign;
  try {
    return parse_json<nlohmann::ordered_json>(line).contains("answer") ? LineKind::answer : LineKind::foreign;
  } catch (const JsonError&) {
    return LineKind::cut;
  }
}

/// Throws UsageError for a path that cannot be the file of answers.
const std::string& checked_file(const std::string& path) {
  if (path == "-")
    throw UsageError("-o - is not possible: answers go to a file, so that an interrupted run can be continued");
  return path;
}

}  // namespace

JsonlAnswers::JsonlAnswers(const std::string& path, const TextInput& prompts) : path_(path), file_(checked_file(path)) {
  if (prompts.is_same_file(file_.descriptor()))
    throw UsageError(fmt::format("-o {} is the file with the prompts: give another one", path_));
  file_.lock(path_);
  load();
}

void JsonlAnswers::load() {
  const int fd = fcntl(file_.descriptor(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (fd < 0) throw InputError(fmt::format("cannot read {}: {}", path_, std::strerror(errno)));
  TextLines lines(TextInput(fd, path_));
  while (lines.next()) take(lines.rest(), lines);
}

/// Only the last line can be incomplete, so all others have been checked before it is repaired.
void JsonlAnswers::take(const std::string& line, const TextLines& at) {
  const LineKind kind = line_kind(line);
  if (kind == LineKind::answer) {
    ++known_[line.substr(kBegin.size(), kHashDigits)];
    if (!at.is_ended()) file_.append("\n");
    return;
  }
  const bool tells_whose = !known_.empty() || line.size() >= kBegin.size() + kHashDigits;
  if (kind == LineKind::foreign || at.is_ended() || !tells_whose) {
    throw InputError(fmt::format(
        "{} line {} is not an answer of winnow run --jsonl, so nothing was written: give another file with -o", path_,
        at.number()));
  }
  log().info("{}: the last line was cut off when an earlier run ended, so it is answered again", path_);
  file_.cut_to(at.offset());
}

bool JsonlAnswers::take_known(const std::string& hash) {
  const auto found = known_.find(hash);
  if (found == known_.end() || found->second == 0) return false;
  --found->second;
  return true;
}

}  // namespace winnow::cli
