#include "cli/jsonl_answers.h"

#include <fcntl.h>
#include <spdlog/fmt/fmt.h>
#include <sys/file.h>
#include <sys/stat.h>
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

/// Whether a line begins as answers do. One that was cut within its beginning does so as far as it goes.
bool begins_as_answer(std::string_view line) {
  const auto hash = line.substr(std::min(line.size(), kBegin.size()), kHashDigits);
  if (hash.find_first_not_of("0123456789abcdef") != std::string_view::npos) return false;
  const std::string expected = fmt::format(R"({}{}","id":)", kBegin, hash);
  return expected.starts_with(line.substr(0, expected.size()));
}

enum class LineKind : std::uint8_t { answer, cut, foreign };

LineKind kind_of(const std::string& line) {
  if (!begins_as_answer(line)) return LineKind::foreign;
  try {
    return parse_json<nlohmann::ordered_json>(line).contains("answer") ? LineKind::answer : LineKind::foreign;
  } catch (const JsonError&) {
    return LineKind::cut;
  }
}

}  // namespace

JsonlAnswers::JsonlAnswers(const std::string& path, const TextInput& prompts) : path_(path) {
  if (path == "-") throw UsageError("-o -: answers go to a file, which says what need not be answered again");
  fd_ = open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666);
  if (fd_ < 0) fail(errno);
  try {
    check(prompts);
    lock();
    load();
  } catch (...) {
    close(fd_);
    throw;
  }
}

JsonlAnswers::~JsonlAnswers() { close(fd_); }

void JsonlAnswers::fail(int error) const {
  throw InputError(fmt::format("cannot write {}: {}", path_, std::strerror(error)));
}

void JsonlAnswers::check(const TextInput& prompts) const {
  struct stat info {};
  if (fstat(fd_, &info) != 0) fail(errno);
  if (!S_ISREG(info.st_mode)) throw InputError(fmt::format("cannot write {}: it is not a regular file", path_));
  if (prompts.is_same_file(fd_))
    throw UsageError(fmt::format("-o {} is the file of the prompts: give another one", path_));
}

void JsonlAnswers::lock() const {
  if (flock(fd_, LOCK_EX | LOCK_NB) == 0) return;
  if (errno == EWOULDBLOCK) throw InputError(fmt::format("{}: another process is writing to it", path_));
  throw InputError(fmt::format("cannot lock {}: {}", path_, std::strerror(errno)));
}

void JsonlAnswers::load() {
  const int fd = fcntl(fd_, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (fd < 0) fail(errno);
  TextLines lines(TextInput(fd, path_));
  while (lines.next()) take(lines.rest(), lines);
}

/// Only the last line can be without its end, so all others have been found to be answers when that one is mended.
void JsonlAnswers::take(const std::string& line, const TextLines& at) {
  const LineKind kind = kind_of(line);
  if (kind == LineKind::answer) {
    ++known_[line.substr(kBegin.size(), kHashDigits)];
    if (!at.is_ended()) append("\n");
    return;
  }
  const bool tells_whose = !known_.empty() || line.size() >= kBegin.size() + kHashDigits;
  if (kind == LineKind::foreign || at.is_ended() || !tells_whose) {
    throw InputError(
        fmt::format("{} line {} is no answer of winnow run --jsonl: nothing was written, give another file with -o",
                    path_, at.number()));
  }
  log().info("{}: the last line was cut when an earlier run ended: it is answered again", path_);
  cut_to(at.offset());
}

void JsonlAnswers::cut_to(std::size_t bytes) const {
  if (ftruncate(fd_, static_cast<off_t>(bytes)) != 0) fail(errno);
}

bool JsonlAnswers::take_known(const std::string& hash) {
  const auto found = known_.find(hash);
  if (found == known_.end() || found->second == 0) return false;
  --found->second;
  return true;
}

void JsonlAnswers::append(const std::string& lines) {
  const off_t before = lseek(fd_, 0, SEEK_END);
  std::string_view left = lines;
  while (!left.empty()) {
    const ssize_t n = write(fd_, left.data(), left.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) break;
    left.remove_prefix(static_cast<std::size_t>(n));
  }
  if (left.empty() && fdatasync(fd_) == 0) return;
  const int error = errno;
  const auto own_end = before + static_cast<off_t>(lines.size() - left.size());
  if (lseek(fd_, 0, SEEK_END) == own_end) cut_to(static_cast<std::size_t>(before));
  fail(error);
}

}  // namespace winnow::cli
