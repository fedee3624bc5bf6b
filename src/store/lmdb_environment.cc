// SPDX-License-Identifier: Apache-2.0
#include "store/lmdb_environment.h"

#include <fcntl.h>
#include <spdlog/fmt/fmt.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <utility>

#include "base/file.h"
#include "base/file_maps.h"
#include "base/format.h"
#include "store/lmdb_check.h"
#include "winnow/error.h"
#include "winnow/store_error.h"

namespace winnow::store {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLargestMap = std::size_t{1} << 42U;  ///< address space, not memory; the file grows with use
constexpr std::size_t kLeastMap = std::size_t{1} << 24U;
constexpr unsigned kReaders = 1024;
constexpr int kStepReads = 100;
constexpr MDB_dbi kTables = 2;
constexpr const char* kRecordsTable = "records";
constexpr const char* kValuesTable = "values";
constexpr mode_t kFileMode = 0600;  ///< a store contains private texts
constexpr mode_t kFolderMode = 0700;

/// LMDB's own files in the folder.
std::string data_file(const std::string& folder) { return folder + "/data.mdb"; }
std::string lock_file(const std::string& folder) { return folder + "/lock.mdb"; }
/// Temporary folder in it, in which a new store is made.
constexpr const char* kNew = "new.mdb";

[[noreturn]] void refuse(const Place& place, const std::string& why) {
  throw StoreError(fmt::format("cannot keep {} in {}: {}", place.contents, place.where, why));
}

/// Creates a folder and its missing parents.
void make_folder(const Place& place) {
  fs::path made;
  for (const auto& part : fs::path(place.where)) {
    made /= part;
    const int error = mkdir(made.c_str(), kFolderMode) == 0 ? 0 : errno;
    std::error_code none;
    if (error != 0 && error != EEXIST && !fs::exists(made, none)) refuse(place, std::strerror(error));
  }
}

/// During its lifetime, no other process creates a store in the folder.
class FolderLock {
 public:
  explicit FolderLock(const Place& place) : fd_(::open(place.where.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    if (fd_ >= 0 && flock(fd_, LOCK_EX) == 0) return;
    const int error = errno;
    if (fd_ >= 0) close(fd_);
    refuse(place, std::strerror(error));
  }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  ~FolderLock() { close(fd_); }

  /// Makes a rename in the folder durable.
  void sync() const { fsync(fd_); }  // not supported by every file system; the file itself is safe

 private:
  int fd_;
};

void refuse_other_files(const Place& place) {
  std::error_code error;
  const auto first = fs::directory_iterator(place.where, error);
  if (error) refuse(place, error.message());
  for (const auto& entry : first) {
    const auto name = entry.path().filename();
    if (name != "lock.mdb" && name != kNew)
      refuse(place, fmt::format("it has other files ({}): give an empty folder", name.string()));
  }
}

/// Creates an empty store on disk; returns LMDB's error code.
int write_empty_store(const std::string& folder) {
  MDB_env* opened = nullptr;
  if (const int code = mdb_env_create(&opened); code != MDB_SUCCESS) return code;
  const std::unique_ptr<MDB_env, void (*)(MDB_env*)> env(opened, mdb_env_close);
  mdb_env_set_maxdbs(opened, kTables);
  mdb_env_set_mapsize(opened, kLeastMap);
  MDB_txn* txn = nullptr;
  int code = mdb_env_open(opened, folder.c_str(), MDB_NOLOCK, kFileMode);
  if (code == MDB_SUCCESS) code = mdb_txn_begin(opened, nullptr, 0, &txn);
  for (const char* const table : {kRecordsTable, kValuesTable}) {
    MDB_dbi unused = 0;
    if (code == MDB_SUCCESS) code = mdb_dbi_open(txn, table, MDB_CREATE, &unused);
  }
  if (code == MDB_SUCCESS) return mdb_txn_commit(txn);
  mdb_txn_abort(txn);
  return code;
}

/// Creates a store atomically, unless there is one.
void make_store(const Place& place) {
  const std::string& folder = place.where;
  make_folder(place);
  const FolderLock lock(place);
  std::error_code none;
  if (fs::exists(data_file(folder), none)) return;  // another process was faster
  refuse_other_files(place);
  const std::string made = folder + "/" + kNew;
  mkdir(made.c_str(), kFolderMode);
  unlink(data_file(made).c_str());  // left by a process that was killed
  int code = write_empty_store(made);
  if (code == MDB_SUCCESS && std::rename(data_file(made).c_str(), data_file(folder).c_str()) != 0) code = errno;
  if (code != MDB_SUCCESS) unlink(data_file(made).c_str());
  rmdir(made.c_str());
  if (code != MDB_SUCCESS) refuse(place, mdb_strerror(code));
  lock.sync();
}

/// Ensures that the folder has a store.
void prepare_folder(const Place& place, Missing missing) {
  const std::string& folder = place.where;
  std::error_code error;
  if (fs::exists(data_file(folder), error)) return;
  if (fs::exists(folder, error) && !fs::is_directory(folder, error)) refuse(place, "it is not a folder");
  if (missing == Missing::is_an_error)
    throw InputError(fmt::format("there are no documents in {}: `winnow docs add` makes a store there", folder));
  make_store(place);
}

/// Open environments of this process by the folder's real path, with their number of users. They are opened and closed
/// under the mutex, so that none is open twice.
struct Registry {
  struct Entry {
    std::unique_ptr<LmdbEnvironment> environment;
    int users = 0;
  };
  std::mutex mutex;
  std::map<std::string, Entry> open;
};
Registry& registry() {
  static auto* const one = new Registry;  // never destroyed: leases may be dropped while the process exits
  return *one;
}

void leave(const std::string& path) {
  auto& all = registry();
  const std::lock_guard lock(all.mutex);
  const auto it = all.open.find(path);
  if (--it->second.users == 0) all.open.erase(it);
}

}  // namespace

std::shared_ptr<const LmdbEnvironment> LmdbEnvironment::open(const Place& place, Missing missing) {
  auto& all = registry();
  const std::lock_guard lock(all.mutex);
  prepare_folder(place, missing);
  std::error_code error;
  const std::string path = fs::canonical(place.where, error).string();
  if (error) refuse(place, error.message());
  auto it = all.open.find(path);
  if (it == all.open.end())
    it = all.open.emplace(path, Registry::Entry{std::unique_ptr<LmdbEnvironment>(new LmdbEnvironment(place))}).first;
  auto& entry = it->second;
  ++entry.users;
  return {entry.environment.get(), [path](const LmdbEnvironment*) { leave(path); }};
}

LmdbEnvironment::LmdbEnvironment(Place place) : place_(std::move(place)) {
  try {
    check_lmdb_metas(FileSource(data_file(folder())));
    open_map();
    name_maps();
    int dead = 0;
    mdb_reader_check(env_, &dead);  // frees slots of processes that were killed
    check_last_step();
    open_tables();
  } catch (...) {
    mdb_env_close(env_);
    throw;
  }
}

LmdbEnvironment::~LmdbEnvironment() {
  maps_.clear();
  mdb_env_close(env_);
}

void LmdbEnvironment::open_map() {
  for (std::size_t size = kLargestMap;; size /= 2) {
    if (const int code = mdb_env_create(&env_); code != MDB_SUCCESS) fail(code, "open");
    mdb_env_set_maxdbs(env_, kTables);
    mdb_env_set_maxreaders(env_, kReaders);
    mdb_env_set_mapsize(env_, size);
    // No read-ahead: reads are single blocks of a layer. No thread-bound readers: leases move between threads.
    const unsigned flags = MDB_NOTLS | MDB_NORDAHEAD | (read_only_ ? MDB_RDONLY : 0U);
    const int code = mdb_env_open(env_, folder().c_str(), flags, kFileMode);
    if (code == MDB_SUCCESS) return;
    mdb_env_close(std::exchange(env_, nullptr));
    if ((code == EACCES || code == EROFS || code == EPERM) && !read_only_) {
      read_only_ = true;
      size *= 2;
    } else if (code != ENOMEM || size <= kLeastMap) {
      fail(code, "open");
    }
  }
}

void LmdbEnvironment::name_maps() {
  for (const auto& file : {data_file(folder()), lock_file(folder())}) {
    std::error_code none;
    for (auto& range : maps_of_file(fs::weakly_canonical(file, none).string())) maps_.push_back(std::move(range));
  }
}

void LmdbEnvironment::check_last_step(LmdbPages pages) const {
  for (int i = 0; i < kStepReads; ++i) {  // other processes may make steps in between
    const Snapshot snapshot(*this);
    if (check_lmdb_step(FileSource(data_file(folder())), mdb_txn_id(snapshot.txn()), pages)) return;
  }
  fail(MDB_CORRUPTED, "read");
}

void LmdbEnvironment::check_before_erasing(MDB_txn* txn) const {
  if (!check_lmdb_step(FileSource(data_file(folder())), mdb_txn_id(txn) - 1, LmdbPages::of_values_too))
    fail(MDB_CORRUPTED, "change");
}

void LmdbEnvironment::open_tables() {
  MDB_txn* txn = nullptr;
  int code = mdb_txn_begin(env_, nullptr, MDB_RDONLY, &txn);
  if (code == MDB_SUCCESS) code = mdb_dbi_open(txn, kRecordsTable, 0, &records_);
  if (code == MDB_SUCCESS) code = mdb_dbi_open(txn, kValuesTable, 0, &values_);
  if (code == MDB_SUCCESS) code = mdb_txn_commit(std::exchange(txn, nullptr));
  mdb_txn_abort(txn);
  if (code != MDB_SUCCESS) fail(code, "open");
}

std::size_t LmdbEnvironment::free_bytes() const {
  struct statvfs disk {};
  return statvfs(folder().c_str(), &disk) == 0 ? disk.f_bavail * disk.f_frsize : 0;
}

void LmdbEnvironment::fail(int code, const std::string& doing) const {
  std::string why = mdb_strerror(code);
  if (code == MDB_INVALID || code == MDB_VERSION_MISMATCH || code == MDB_CORRUPTED || code == MDB_INCOMPATIBLE ||
      code == MDB_PAGE_NOTFOUND || code == MDB_NOTFOUND) {
    why = "its data.mdb was not made by winnow, or is damaged";
  } else if (code == MDB_MAP_FULL || code == MDB_MAP_RESIZED) {
    MDB_envinfo info{};
    mdb_env_info(env_, &info);
    why = fmt::format("it needs more than the {} of address space that this process may use",
                      format_bytes(info.me_mapsize));
  } else if (code == MDB_READERS_FULL) {
    why = fmt::format("{} processes and threads are already reading it", kReaders);
  } else if (code == ENOSPC) {
    why += fmt::format(" ({} are free)", format_bytes(free_bytes()));
  }
  throw StoreError(fmt::format("cannot {} the {} in {}: {}", doing, place_.contents, folder(), why));
}

LmdbEnvironment::Snapshot::Snapshot(const LmdbEnvironment& environment) {
  if (const int code = mdb_txn_begin(environment.env(), nullptr, MDB_RDONLY, &txn_); code != MDB_SUCCESS)
    environment.fail(code, "read");
}

std::shared_ptr<const LmdbEnvironment::Snapshot> LmdbEnvironment::now() const {
  const std::lock_guard lock(mutex_);
  MDB_envinfo info{};
  mdb_env_info(env_, &info);
  auto snapshot = last_.lock();
  if (snapshot == nullptr || mdb_txn_id(snapshot->txn()) != info.me_last_txnid) {
    snapshot = std::make_shared<const Snapshot>(*this);
    last_ = snapshot;
  }
  return snapshot;
}

}  // namespace winnow::store
