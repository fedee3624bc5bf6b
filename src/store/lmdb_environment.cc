#include "store/lmdb_environment.h"

#include <spdlog/fmt/fmt.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <utility>

#include "base/format.h"
#include "winnow/error.h"

namespace winnow::store {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLargestMap = std::size_t{1} << 42U;  ///< address space, not memory; the file grows as it is used
constexpr std::size_t kLeastMap = std::size_t{1} << 24U;
constexpr unsigned kReaders = 1024;
constexpr MDB_dbi kTables = 2;
constexpr mode_t kMode = 0644;

/// LMDB's own file in the folder.
std::string data_file(const std::string& folder) { return folder + "/data.mdb"; }

[[noreturn]] void refuse(const std::string& folder, const std::string& why) {
  throw InputError(fmt::format("cannot keep documents in {}: {}", folder, why));
}

/// Makes sure that there is a folder which holds a store or nothing.
void prepare_folder(const std::string& folder, Missing missing) {
  std::error_code error;
  if (fs::exists(data_file(folder), error)) return;
  if (fs::exists(folder, error) && !fs::is_directory(folder, error)) refuse(folder, "it is not a folder");
  if (missing == Missing::is_an_error) {
    throw InputError(fmt::format("there are no documents in {}: `winnow docs add` makes a store there", folder));
  }
  fs::create_directories(folder, error);
  if (error) refuse(folder, error.message());
  const auto first = fs::directory_iterator(folder, error);
  if (error) refuse(folder, error.message());
  for (const auto& entry : first) {
    const auto name = entry.path().filename();
    if (name != "lock.mdb" && name != "data.mdb")
      refuse(folder, fmt::format("it has other files ({}); name an empty folder", name.string()));
  }
}

/// Environments of this process by the folder's real path, each with the number of those who use it. Opened and closed
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
  static auto* const one = new Registry;  // leases may be dropped while the process ends
  return *one;
}

void leave(const std::string& path) {
  auto& all = registry();
  const std::lock_guard lock(all.mutex);
  const auto it = all.open.find(path);
  if (--it->second.users == 0) all.open.erase(it);
}

}  // namespace

std::shared_ptr<const LmdbEnvironment> LmdbEnvironment::open(const std::string& folder, Missing missing) {
  auto& all = registry();
  const std::lock_guard lock(all.mutex);
  prepare_folder(folder, missing);
  std::error_code error;
  const std::string path = fs::canonical(folder, error).string();
  if (error) refuse(folder, error.message());
  auto it = all.open.find(path);
  if (it == all.open.end())
    it = all.open.emplace(path, Registry::Entry{std::unique_ptr<LmdbEnvironment>(new LmdbEnvironment(folder))}).first;
  auto& entry = it->second;
  ++entry.users;
  return {entry.environment.get(), [path](const LmdbEnvironment*) { leave(path); }};
}

LmdbEnvironment::LmdbEnvironment(std::string folder) : folder_(std::move(folder)) {
  try {
    open_map();
    check_length();
    int dead = 0;
    mdb_reader_check(env_, &dead);  // slots of processes that were killed
    open_tables();
  } catch (...) {
    mdb_env_close(env_);
    throw;
  }
}

LmdbEnvironment::~LmdbEnvironment() { mdb_env_close(env_); }

void LmdbEnvironment::open_map() {
  for (std::size_t size = kLargestMap;; size /= 2) {
    if (const int code = mdb_env_create(&env_); code != MDB_SUCCESS) fail(code, "open");
    mdb_env_set_maxdbs(env_, kTables);
    mdb_env_set_maxreaders(env_, kReaders);
    mdb_env_set_mapsize(env_, size);
    // No read-ahead: what is read is some blocks of a layer here and there. No thread-bound readers: leases move
    // between threads.
    const unsigned flags = MDB_NOTLS | MDB_NORDAHEAD | (read_only_ ? MDB_RDONLY : 0U);
    const int code = mdb_env_open(env_, folder_.c_str(), flags, kMode);
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

/// A file that was cut would be found out by a bus error, when its pages are read.
void LmdbEnvironment::check_length() const {
  MDB_envinfo info{};
  MDB_stat stat{};
  mdb_env_info(env_, &info);
  mdb_env_stat(env_, &stat);
  struct stat file {};
  int fd = -1;
  mdb_env_get_fd(env_, &fd);
  if (fstat(fd, &file) != 0) fail(errno, "read");
  const auto needed = (info.me_last_pgno + 1) * stat.ms_psize;
  if (static_cast<std::size_t>(file.st_size) < needed && info.me_last_txnid > 0) {
    throw InputError(fmt::format("{} is truncated: it has {} of {} bytes", data_file(folder_), file.st_size, needed));
  }
}

void LmdbEnvironment::open_tables() {
  MDB_txn* txn = nullptr;
  const auto opened = [&](unsigned flags) {
    if (const int code = mdb_txn_begin(env_, nullptr, flags == 0 ? MDB_RDONLY : 0, &txn); code != MDB_SUCCESS)
      return code;
    for (const auto& [name, table] : {std::pair("records", &records_), std::pair("values", &values_)}) {
      if (const int code = mdb_dbi_open(txn, name, flags, table); code != MDB_SUCCESS) {
        mdb_txn_abort(txn);
        return code;
      }
    }
    return mdb_txn_commit(txn);
  };
  int code = opened(0);
  if (code == MDB_NOTFOUND && !read_only_) code = opened(MDB_CREATE);
  if (code != MDB_SUCCESS) fail(code, "open");
}

std::size_t LmdbEnvironment::free_bytes() const {
  struct statvfs disk {};
  return statvfs(folder_.c_str(), &disk) == 0 ? disk.f_bavail * disk.f_frsize : 0;
}

void LmdbEnvironment::fail(int code, const std::string& doing) const {
  std::string why = mdb_strerror(code);
  if (code == MDB_INVALID || code == MDB_VERSION_MISMATCH || code == MDB_CORRUPTED || code == MDB_INCOMPATIBLE ||
      code == MDB_NOTFOUND) {
    why = "its data.mdb is no store of documents, or is damaged";
  } else if (code == MDB_MAP_FULL || code == MDB_MAP_RESIZED) {
    MDB_envinfo info{};
    mdb_env_info(env_, &info);
    why = fmt::format("it needs more than the {} of address space that this process could have",
                      format_bytes(info.me_mapsize));
  } else if (code == MDB_READERS_FULL) {
    why = fmt::format("{} processes and threads read it already", kReaders);
  } else if (code == ENOSPC) {
    why += fmt::format(" ({} are free)", format_bytes(free_bytes()));
  }
  throw InputError(fmt::format("cannot {} the documents in {}: {}", doing, folder_, why));
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
