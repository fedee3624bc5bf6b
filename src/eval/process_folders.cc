// SPDX-License-Identifier: Apache-2.0
#include "eval/process_folders.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <tuple>

#include "winnow/error.h"

namespace winnow::eval {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "part-";
/// Marks a process folder, so that a user's folder of that name is not mistaken for one.
constexpr const char* kMarker = "winnow-part";

/// part-0, part-1, …
bool has_process_folder_name(const std::string& name) {
  if (!name.starts_with(kPrefix)) return false;
  const auto number = name.substr(kPrefix.size());
  const auto is_digit = [](unsigned char c) { return std::isdigit(c) != 0; };
  return !number.empty() && (number == "0" || number.front() != '0') &&
         std::all_of(number.begin(), number.end(), is_digit);
}

/// Links are not followed.
bool is_file(const fs::path& path) { return fs::is_regular_file(fs::symlink_status(path)); }
bool is_folder(const fs::path& path) { return fs::is_directory(fs::symlink_status(path)); }

bool is_process_folder(const fs::path& path) { return is_folder(path) && is_file(path / kMarker); }

/// Entries of a folder that have a process folder's name and satisfy the predicate, in alphabetical order.
std::vector<std::string> named_like_process_folders(const std::string& folder,
                                                    const std::function<bool(const fs::path&)>& wanted) {
  std::vector<std::string> out;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (has_process_folder_name(entry.path().filename().string()) && wanted(entry.path()))
      out.push_back(entry.path().string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<std::string> process_folders_in(const std::string& folder) {
  return named_like_process_folders(folder, is_process_folder);
}

void begin_process_folder(const fs::path& path) {
  if (is_process_folder(path)) return;
  std::error_code error;
  fs::create_directories(path, error);
  if (error) throw InputError(fmt::format("cannot make the folder {}: {}", path.string(), error.message()));
  // A process that was killed here has left an empty folder.
  if (!is_folder(path) || !fs::is_empty(path))
    throw InputError(
        fmt::format("{} was not made by winnow eval (it has no file {}): move it away, or give another folder with -o",
                    path.string(), kMarker));
  std::ofstream marker(path / kMarker);
  marker << "Records of one process of winnow eval. They move to ../records.jsonl when all processes are done.\n";
  if (!marker.flush())
    throw InputError(fmt::format("cannot write {}: {}", (path / kMarker).string(), std::strerror(errno)));
}

/// Removes the marker last: a folder that a killed process leaves is still a process folder. Keeps a folder with other
/// files.
void remove_process_folder(const fs::path& path) {
  std::error_code ignored;
  for (const char* name : {"records.jsonl", "lock", kMarker}) {
    if (is_file(path / name)) fs::remove(path / name, ignored);
  }
  fs::remove(path, ignored);
}

using Place = std::tuple<std::string, std::string, std::string>;  // task, id, protocol

/// The order in which an evaluation measures its groups. Other groups come last.
class Order {
 public:
  explicit Order(const Evaluation& evaluation) {
    for (const auto& task : evaluation.tasks) {
      for (const auto& sample : task.samples) {
        for (const Protocol protocol : evaluation.protocols)
          places_.emplace(Place(sample.task, sample.id, name_of(protocol)), places_.size());
      }
    }
  }

  std::size_t of(const Record& record) const {
    const auto found = places_.find(Place(record.key.task, record.key.id, record.key.protocol));
    return found == places_.end() ? places_.size() : found->second;
  }

 private:
  std::map<Place, std::size_t> places_;
};

std::set<Key> keys_of(const std::vector<Record>& records) {
  std::set<Key> out;
  for (const auto& record : records) out.insert(record.key);
  return out;
}

}  // namespace

std::vector<std::vector<Record>> groups_of(const std::vector<Record>& records) {
  std::vector<std::vector<Record>> out;
  std::map<std::string, std::size_t> known;
  for (const auto& record : records) {
    const auto [place, is_new] = known.emplace(record.group, out.size());
    if (is_new) out.emplace_back();
    out[place->second].push_back(record);
  }
  return out;
}

std::string process_folder(const std::string& folder, int process) {
  return (fs::path(folder) / fmt::format("{}{}", kPrefix, process)).string();
}

void begin_process_folders(const std::string& folder, int processes) {
  for (int i = 0; i < processes; ++i) begin_process_folder(process_folder(folder, i));
}

std::vector<std::string> unmarked_process_folders(const std::string& folder) {
  return named_like_process_folders(folder, [](const fs::path& path) { return !is_process_folder(path); });
}

std::vector<Record> repaired_process_records(const std::string& folder, const std::string& model_hash) {
  std::vector<Record> out;
  for (const auto& path : process_folders_in(folder)) {
    const RecordFile file(path, model_hash);
    out.insert(out.end(), file.records().begin(), file.records().end());
  }
  return out;
}

void collect_process_folders(const std::string& folder, const std::string& model_hash, const Evaluation& evaluation,
                             RecordFile& to) {
  auto groups = groups_of(repaired_process_records(folder, model_hash));
  const Order order(evaluation);
  std::stable_sort(groups.begin(), groups.end(),
                   [&](const auto& a, const auto& b) { return order.of(a.front()) < order.of(b.front()); });
  const auto known = keys_of(to.records());
  for (const auto& group : groups) {
    if (!known.contains(group.front().key)) to.add(group);
  }
  for (const auto& path : process_folders_in(folder)) remove_process_folder(path);
}

std::vector<Record> records_in(const std::string& folder) {
  if (!fs::is_directory(folder)) throw InputError(fmt::format("{}: no such folder", folder));
  auto out = read_records((fs::path(folder) / "records.jsonl").string());
  for (const auto& path : process_folders_in(folder)) {
    const auto file = fs::path(path) / "records.jsonl";
    if (!fs::exists(file)) continue;
    const auto more = read_records(file.string());
    out.insert(out.end(), more.begin(), more.end());
  }
  return out;
}

std::set<Key> known_in(const std::string& folder) { return keys_of(records_in(folder)); }

}  // namespace winnow::eval
