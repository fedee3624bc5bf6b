#include "eval/record_file.h"

#include <fcntl.h>
#include <spdlog/fmt/fmt.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "winnow/error.h"

namespace winnow::eval {

namespace {

using Json = nlohmann::ordered_json;

struct Lines {
  std::vector<Record> records;
  bool cut = false;  ///< the last line has no end
};

Record parse(std::string_view line, const std::string& path, std::size_t number) {
  try {
    return record_of(Json::parse(line));
  } catch (const nlohmann::json::exception& error) {
    throw InputError(fmt::format("{} line {}: no record: {}", path, number, error.what()));
  }
}

/// Whether a line without an end may be the beginning of a record.
bool may_be_cut(std::string_view line) {
  constexpr std::string_view kBegin = R"({"task":)";
  return line.substr(0, kBegin.size()) == kBegin.substr(0, line.size());
}

/// All of a file, or nothing where there is none. A file that cannot be read must not look like one that is shorter.
std::string text_of(const std::string& path) {
  std::error_code error;
  if (std::filesystem::status(path, error).type() == std::filesystem::file_type::not_found) return {};
  const FileSource file(path);
  std::string out(file.size(), '\0');
  file.read(0, std::as_writable_bytes(std::span(out)));
  return out;
}

Lines read_lines(const std::string& path) {
  Lines out;
  const std::string text = text_of(path);
  std::string_view rest = text;
  for (std::size_t number = 1; !rest.empty(); ++number) {
    const auto end = rest.find('\n');
    if (end == std::string_view::npos) {
      if (!may_be_cut(rest)) throw InputError(fmt::format("{} line {}: no record", path, number));
      out.cut = true;
      break;
    }
    out.records.push_back(parse(rest.substr(0, end), path, number));
    rest.remove_prefix(end + 1);
  }
  return out;
}

std::string lines_of(std::span<const Record> records) {
  std::string out;
  for (const auto& record : records) out += to_json(record).dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  return out;
}

/// Leaves out the records of groups that are not whole; how many groups.
int drop_partial_groups(std::vector<Record>& records) {
  std::map<std::string, int> there;
  for (const auto& record : records) ++there[record.group];
  const auto is_partial = [&](const Record& record) { return there[record.group] < record.group_size; };
  std::map<std::string, int> partial;
  for (const auto& record : records) {
    if (is_partial(record)) ++partial[record.group];
  }
  std::erase_if(records, is_partial);
  return static_cast<int>(partial.size());
}

/// Appends to a file until all is on the disk: 0, or the error.
int append(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return fdatasync(fd) == 0 ? 0 : errno;
}

}  // namespace

RecordFile::RecordFile(const std::string& folder, const std::string& model_hash)
    : path_((std::filesystem::path(folder) / "records.jsonl").string()) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw InputError(fmt::format("cannot make the folder {}: {}", folder, error.message()));
  lock((std::filesystem::path(folder) / "lock").string());
  load(model_hash);
  file_.fd = open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file_.fd < 0) throw InputError(fmt::format("cannot write {}: {}", path_, std::strerror(errno)));
}

RecordFile::Descriptor::~Descriptor() {
  if (fd >= 0) close(fd);
}

/// A file of its own: the records' is replaced when it is repaired.
void RecordFile::lock(const std::string& path) {
  lock_.fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (lock_.fd < 0) throw InputError(fmt::format("cannot write {}: {}", path, std::strerror(errno)));
  if (flock(lock_.fd, LOCK_EX | LOCK_NB) == 0) return;
  if (errno == EWOULDBLOCK) throw InputError(fmt::format("{}: another process is writing to it", path_));
  throw InputError(fmt::format("cannot lock {}: {}", path, std::strerror(errno)));
}

void RecordFile::load(const std::string& model_hash) {
  auto lines = read_lines(path_);
  for (std::size_t i = 0; i < lines.records.size(); ++i) {
    if (lines.records[i].model_hash != model_hash) {
      throw InputError(
          fmt::format("{} line {}: a record of another model ({}, and this one is {}); give another folder with -o",
                      path_, i + 1, lines.records[i].model_hash, model_hash));
    }
  }
  records_ = std::move(lines.records);
  repairs_ = {lines.cut ? 1 : 0, drop_partial_groups(records_)};
  if (repairs_.cut_lines + repairs_.partial_groups > 0) rewrite();
}

void RecordFile::rewrite() const {
  const std::string text = lines_of(records_);
  ReplacingFile file(path_);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

void RecordFile::add(std::span<const Record> group) {
  const off_t before = lseek(file_.fd, 0, SEEK_END);
  const int error = append(file_.fd, lines_of(group));
  if (error == 0) {
    records_.insert(records_.end(), group.begin(), group.end());
    return;
  }
  [[maybe_unused]] const int cut = ftruncate(file_.fd, before);  // where that fails too, the next start cuts it
  throw InputError(fmt::format("cannot write {}: {}", path_, std::strerror(error)));
}

std::vector<Record> read_records(const std::string& path) {
  if (!std::filesystem::is_regular_file(path)) throw InputError(fmt::format("{}: no such file", path));
  return read_lines(path).records;
}

}  // namespace winnow::eval
