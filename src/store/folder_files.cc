// SPDX-License-Identifier: Apache-2.0
#include "store/folder_files.h"

#include <fcntl.h>
#include <spdlog/fmt/fmt.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "winnow/error.h"

namespace winnow::store {

namespace {

namespace fs = std::filesystem;

constexpr const char* kStoreMark = "winnow-store-1";
constexpr std::string_view kPartEnd = ".part";

bool contains(const std::vector<std::string>& keys, std::string_view key) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

bool is_there(const std::string& path) {
  struct stat about {};
  return lstat(path.c_str(), &about) == 0;
}

void wait_for_lock(int fd) {
  while (flock(fd, LOCK_EX) != 0) {
    if (errno != EINTR) throw std::system_error(errno, std::generic_category());
  }
}

}  // namespace

FolderFiles::Snapshot::Snapshot(OpenFile opened, const std::string& path)
    : file(std::move(opened)), records(file.read_all(), path) {}

FolderFiles::FolderFiles(const Place& place, Missing missing) : folder_(place, kStoreMark) {
  refuse_earlier_format();
  try {
    const bool has_mark = folder_.exists();
    const bool has_values = has_mark && this->has_values();  // first: another process makes records before values
    if (!has_mark || !is_there(records_path())) {
      if (has_values)
        throw InputError(
            fmt::format("the {} in {} are damaged: the file of records is missing", place.contents, place.where));
      if (missing == Missing::is_an_error)
        throw InputError(
            fmt::format("there are no documents in {}: `winnow docs add` makes a store there", place.where));
      create();
    }
    records();
  } catch (const std::system_error& error) {
    folder_.fail("open", error.code().value());
  }
}

void FolderFiles::refuse_earlier_format() const {
  if (is_there(folder_.mark()) || !is_there(folder_.path_of("data.mdb"))) return;
  const auto& [where, contents] = folder_.place();
  throw InputError(fmt::format(
      "the {} in {} (data.mdb) were stored by an earlier version, and this one cannot read them: name another "
      "folder, and store them again",
      contents, where));
}

void FolderFiles::create() const {
  folder_.create();
  for (const auto* const inner : {"values", "parts"}) folder_.create_inner(inner);
  const Descriptor mark(::open(folder_.mark().c_str(), O_RDWR | O_CLOEXEC));
  wait_for_lock(mark.get());
  if (is_there(records_path())) return;  // another process was faster
  replace_records({}, {}, {});
}

bool FolderFiles::has_values() const {
  std::error_code none;
  return fs::directory_iterator(folder_.path_of("values"), none) != fs::directory_iterator();
}

std::string FolderFiles::part_path(const std::string& key) const {
  return folder_.path_of("parts/" + key + std::string(kPartEnd));
}

std::shared_ptr<const RecordFile> FolderFiles::records() const {
  const auto path = records_path();
  const std::lock_guard lock(mutex_);
  if (last_ == nullptr || !last_->file.is_at(path)) {
    auto file = OpenFile::open(path);
    if (!file) throw std::system_error(ENOENT, std::generic_category());
    last_ = std::make_shared<const Snapshot>(std::move(*file), path);
  }
  return {last_, &last_->records};
}

std::optional<OpenFile> FolderFiles::value(const std::string& key) const {
  if (auto file = OpenFile::open(value_path(key))) return file;
  if (contains(records()->last_step().added, key)) {
    if (auto file = OpenFile::open(part_path(key))) return file;
  }
  return OpenFile::open(value_path(key));  // the step may have been finished meanwhile
}

Descriptor FolderFiles::lock() const {
  Descriptor mark(::open(folder_.mark().c_str(), O_RDWR | O_CLOEXEC));
  wait_for_lock(mark.get());
  const auto last = records();
  if (const int error = finish(last->last_step()); error != 0) throw std::system_error(error, std::generic_category());
  remove_parts(last->last_step());
  return mark;
}

PartFile FolderFiles::new_value(const std::string& key) const { return PartFile(part_path(key)); }

void FolderFiles::replace_records(std::span<const FiledRecord> records, const StepValues& step,
                                  std::vector<PartFile> values) const {
  const auto part = records_path() + std::string(kPartEnd);
  unlink(part.c_str());  // left by a process that was killed
  PartFile file(part);
  RecordFile::write(file, records, step);
  const Descriptor folder = open_folder(folder_.path_of(""));
  const Descriptor parts = open_folder(folder_.path_of("parts"));
  const Descriptor finished = open_folder(folder_.path_of("values"));  // what the last step has moved there
  std::vector<int> all{file.get(), parts.get(), finished.get()};
  for (const auto& value : values) all.push_back(value.get());
  sync_all(all);
  file.rename_to(records_path());
  for (auto& value : values) value.keep();
  sync_all(std::array{folder.get()});
  finish(step);
}

/// Does what follows from the step. It can be repeated. Returns an error if an added value is still a part: the next
/// step must not begin then, as it would take it for one that a killed process has left.
int FolderFiles::finish(const StepValues& step) const {
  int error = 0;
  for (const auto& key : step.erased) unlink(value_path(key).c_str());
  for (const auto& key : step.added) {
    if (std::rename(part_path(key).c_str(), value_path(key).c_str()) != 0 && errno != ENOENT) error = errno;
  }
  return error;
}

/// Removes files that a killed process has left.
void FolderFiles::remove_parts(const StepValues& last) const {
  std::error_code error;
  for (fs::directory_iterator at(folder_.path_of("parts"), error), end; !error && at != end; at.increment(error)) {
    const auto name = at->path().filename().string();
    if (!name.ends_with(kPartEnd)) continue;
    const auto key = std::string_view(name).substr(0, name.size() - kPartEnd.size());
    if (is_value_key(key) && !contains(last.added, key)) unlink(at->path().c_str());
  }
}

}  // namespace winnow::store
