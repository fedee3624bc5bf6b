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

/// One folder that LMDB has mapped. LMDB allows a process to open a folder only once, so all stores of a process in one
/// folder share this.
class LmdbEnvironment {
 public:
  /// A reading transaction: what it shows does not change and stays mapped while it lives.
  class Snapshot {
   public:
    explicit Snapshot(const LmdbEnvironment& environment);
    Snapshot(const Snapshot&) = delete;
    Snapshot& operator=(const Snapshot&) = delete;
    ~Snapshot() { mdb_txn_abort(txn_); }

    MDB_txn* txn() const { return txn_; }
    /// Held by whoever looks something up: a transaction is for one thread at a time. What was found may be read
    /// without.
    std::mutex& mutex() const { return mutex_; }

   private:
    MDB_txn* txn_ = nullptr;
    mutable std::mutex mutex_;
  };

  static std::shared_ptr<const LmdbEnvironment> open(const Place& place, Missing missing);
  LmdbEnvironment(const LmdbEnvironment&) = delete;
  LmdbEnvironment& operator=(const LmdbEnvironment&) = delete;
  ~LmdbEnvironment();

  /// The store as it is now. Those who look between two changes share one.
  std::shared_ptr<const Snapshot> now() const;

  /// Checks all that LMDB will read of the store as it is now, or in a transaction that will erase values: LMDB then
  /// also reads the pages where they begin. Throws InputError.
  void check_last_step(LmdbPages pages = LmdbPages::of_trees) const;
  void check_before_erasing(MDB_txn* txn) const;

  MDB_env* env() const { return env_; }
  MDB_dbi records() const { return records_; }
  MDB_dbi values() const { return values_; }
  const std::string& folder() const { return place_.where; }
  bool is_read_only() const { return read_only_; }
  /// What its disk has left.
  std::size_t free_bytes() const;
  /// Throws InputError for what an LMDB call has returned.
  [[noreturn]] void fail(int code, const std::string& doing) const;

 private:
  explicit LmdbEnvironment(Place place);
  void open_map();
  /// Names LMDB's maps for whoever handles SIGBUS.
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
