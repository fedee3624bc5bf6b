// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lmdb.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/mapped_range.h"
#include "store/byte_store.h"
#include "store/lmdb_check.h"

namespace winnow::store {

/// A folder mapped by LMDB. LMDB allows a process to open a folder only once, so all of a process's stores in a folder
/// share it.
class LmdbEnvironment {
 public:
  /// A read transaction: its view does not change and stays mapped during its lifetime.
  class Snapshot {
   public:
    explicit Snapshot(const LmdbEnvironment& environment);
    Snapshot(const Snapshot&) = delete;
    Snapshot& operator=(const Snapshot&) = delete;
    ~Snapshot() { mdb_txn_abort(txn_); }

    MDB_txn* txn() const { return txn_; }
    /// Locked for lookups, since a transaction is for one thread at a time. Results may be read without it.
    std::mutex& mutex() const { return mutex_; }

   private:
    MDB_txn* txn_ = nullptr;
    mutable std::mutex mutex_;
  };

  static std::shared_ptr<const LmdbEnvironment> open(const Place& place, Missing missing);
  LmdbEnvironment(const LmdbEnvironment&) = delete;
  LmdbEnvironment& operator=(const LmdbEnvironment&) = delete;
  ~LmdbEnvironment();

  /// The current state of the store. Callers between two changes share a snapshot.
  std::shared_ptr<const Snapshot> now() const;

  /// Checks everything that LMDB will read of the current state; check_before_erasing() also checks the pages at which
  /// values begin, which LMDB reads when it erases them. Throws InputError.
  void check_last_step(LmdbPages pages = LmdbPages::of_trees) const;
  void check_before_erasing(MDB_txn* txn) const;

  MDB_env* env() const { return env_; }
  MDB_dbi records() const { return records_; }
  MDB_dbi values() const { return values_; }
  const std::string& folder() const { return place_.where; }
  bool is_read_only() const { return read_only_; }
  /// Free space of its disk.
  std::size_t free_bytes() const;
  /// Throws InputError for an error code of LMDB.
  [[noreturn]] void fail(int code, const std::string& doing) const;

 private:
  explicit LmdbEnvironment(Place place);
  void open_map();
  /// Registers LMDB's maps for handlers of SIGBUS.
  void name_maps();
  void open_tables();

  Place place_;
  MDB_env* env_ = nullptr;
  MDB_dbi records_ = 0;
  MDB_dbi values_ = 0;
  bool read_only_ = false;
  std::vector<std::unique_ptr<MappedRange>> maps_;
  mutable std::mutex mutex_;
  mutable std::weak_ptr<const Snapshot> last_;
};

}  // namespace winnow::store
