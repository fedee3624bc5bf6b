// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "base/format.h"
#include "store/lmdb_environment.h"
#include "store/stores.h"
#include "winnow/error.h"

namespace winnow::store {

namespace {

MDB_val val(const std::string& key) { return {key.size(), const_cast<char*>(key.data())}; }
std::span<const std::byte> bytes_of(const MDB_val& v) { return {static_cast<const std::byte*>(v.mv_data), v.mv_size}; }
Bytes copy_of(const MDB_val& v) {
  const auto bytes = bytes_of(v);
  return {bytes.begin(), bytes.end()};
}

std::optional<Bytes> find_record(const LmdbEnvironment& environment, MDB_txn* txn, const std::string& key) {
  MDB_val at = val(key);
  MDB_val found{};
  const int code = mdb_get(txn, environment.records(), &at, &found);
  if (code == MDB_NOTFOUND) return std::nullopt;
  if (code != MDB_SUCCESS) environment.fail(code, "read");
  return copy_of(found);
}

Records find_records(const LmdbEnvironment& environment, MDB_txn* txn, const std::string& prefix) {
  MDB_cursor* opened = nullptr;
  if (const int code = mdb_cursor_open(txn, environment.records(), &opened); code != MDB_SUCCESS)
    environment.fail(code, "read");
  const std::unique_ptr<MDB_cursor, void (*)(MDB_cursor*)> cursor(opened, mdb_cursor_close);
  Records out;
  MDB_val key = val(prefix);
  MDB_val found{};
  int code = mdb_cursor_get(opened, &key, &found, prefix.empty() ? MDB_FIRST : MDB_SET_RANGE);
  for (; code == MDB_SUCCESS; code = mdb_cursor_get(opened, &key, &found, MDB_NEXT)) {
    std::string name(static_cast<const char*>(key.mv_data), key.mv_size);
    if (!name.starts_with(prefix)) return out;
    out.emplace(std::move(name), copy_of(found));
  }
  if (code != MDB_NOTFOUND) environment.fail(code, "read");
  return out;
}

/// Writes into bytes reserved by LMDB.
class ReservedSink : public ByteSink {
 public:
  explicit ReservedSink(const MDB_val& at) : at_(static_cast<std::byte*>(at.mv_data)), left_(at.mv_size) {}
  void write(std::span<const std::byte> bytes) override {
    if (bytes.size() > left_) throw std::logic_error("a value has more bytes than announced");
    if (!bytes.empty()) std::memcpy(at_, bytes.data(), bytes.size());
    at_ += bytes.size();
    left_ -= bytes.size();
  }
  std::size_t left() const { return left_; }

 private:
  std::byte* at_;
  std::size_t left_;
};

/// The write transaction, of which there is one at a time.
class LmdbChange : public Change {
 public:
  explicit LmdbChange(const LmdbEnvironment& environment) : environment_(environment) {
    if (const int code = mdb_txn_begin(environment.env(), nullptr, 0, &txn_); code != MDB_SUCCESS)
      environment.fail(code, "change");
  }
  LmdbChange(const LmdbChange&) = delete;
  LmdbChange& operator=(const LmdbChange&) = delete;
  ~LmdbChange() override {
    if (txn_ != nullptr) mdb_txn_abort(txn_);
  }
  void commit() {
    if (const int code = mdb_txn_commit(std::exchange(txn_, nullptr)); code != MDB_SUCCESS) fail(code);
  }

  std::optional<Bytes> record(const std::string& key) override { return find_record(environment_, txn_, key); }
  Records records(const std::string& prefix) override { return find_records(environment_, txn_, prefix); }
  void put_record(const std::string& key, std::span<const std::byte> bytes) override {
    MDB_val at = val(key);
    MDB_val data{bytes.size(), const_cast<std::byte*>(bytes.data())};
    if (const int code = mdb_put(txn_, environment_.records(), &at, &data, 0); code != MDB_SUCCESS) fail(code);
  }
  void erase_record(const std::string& key) override { erase(environment_.records(), key); }
  void add_value(const std::string& key, std::size_t size, const std::function<void(ByteSink&)>& fill) override {
    MDB_val at = val(key);
    MDB_val place{size, nullptr};
    added_ += size;
    if (const int code = mdb_put(txn_, environment_.values(), &at, &place, MDB_RESERVE | MDB_NOOVERWRITE);
        code != MDB_SUCCESS)
      fail(code);
    ReservedSink sink(place);
    fill(sink);
    if (sink.left() > 0) throw std::logic_error("a value has fewer bytes than announced");
  }
  void erase_value(const std::string& key) override {
    if (!has_erased_) environment_.check_before_erasing(txn_);
    has_erased_ = true;
    erase(environment_.values(), key);
  }
  bool has_erased() const { return has_erased_; }

 private:
  void erase(MDB_dbi table, const std::string& key) {
    MDB_val at = val(key);
    if (const int code = mdb_del(txn_, table, &at, nullptr); code != MDB_SUCCESS && code != MDB_NOTFOUND) fail(code);
  }
  [[noreturn]] void fail(int code) const {
    if (code == EIO && environment_.free_bytes() < added_) code = ENOSPC;  // LMDB's error code for partial writes
    environment_.fail(code, added_ > 0 ? fmt::format("add {} to", format_bytes(added_)) : "change");
  }

  const LmdbEnvironment& environment_;
  MDB_txn* txn_ = nullptr;
  std::size_t added_ = 0;
  bool has_erased_ = false;
};

/// LMDB reuses pages that were freed two steps ago, so a removal makes room only after further steps. If these fail,
/// the removal has still happened.
void take_another_step(const LmdbEnvironment& environment) {
  try {
    LmdbChange change(environment);
    const std::string nothing = "nothing";
    change.put_record(nothing, {});
    change.erase_record(nothing);
    change.commit();
  } catch (const InputError&) {
    return;
  }
}

class LmdbStore : public ByteStore {
 public:
  LmdbStore(const Place& place, Missing missing) : environment_(LmdbEnvironment::open(place, missing)) {}

  const std::string& name() const override { return environment_->folder(); }

  std::optional<Bytes> record(const std::string& key) const override {
    const auto snapshot = environment_->now();
    const std::lock_guard lock(snapshot->mutex());
    return find_record(*environment_, snapshot->txn(), key);
  }
  Records records(const std::string& prefix) const override {
    const auto snapshot = environment_->now();
    const std::lock_guard lock(snapshot->mutex());
    return find_records(*environment_, snapshot->txn(), prefix);
  }
  void check() const override { environment_->check_last_step(LmdbPages::of_values_too); }
  std::optional<Lease> value(const std::string& key, std::span<const ByteRange> ranges) const override {
    const auto held = std::make_shared<const Held>(Held{environment_, environment_->now()});
    MDB_val at = val(key);
    MDB_val found{};
    {
      const std::lock_guard lock(held->snapshot->mutex());
      const int code = mdb_get(held->snapshot->txn(), environment_->values(), &at, &found);
      if (code == MDB_NOTFOUND) return std::nullopt;
      if (code != MDB_SUCCESS) environment_->fail(code, "read");
    }
    Lease lease{found.mv_size, {}, held};
    for (const auto& range : ranges) lease.parts.push_back(part_of(bytes_of(found), range));
    return lease;
  }
  void change(const std::function<void(Change&)>& make) override {
    if (environment_->is_read_only()) environment_->fail(EACCES, "change");
    if (make_and_commit(make) == Erased::something) take_another_step(*environment_);
  }

 private:
  enum class Erased : std::uint8_t { nothing, something };
  Erased make_and_commit(const std::function<void(Change&)>& make) {
    LmdbChange change(*environment_);
    make(change);
    change.commit();
    return change.has_erased() ? Erased::something : Erased::nothing;
  }

  /// Keeps the environment and the snapshot of a lease, which may outlive its store.
  struct Held {
    std::shared_ptr<const LmdbEnvironment> environment;
    std::shared_ptr<const LmdbEnvironment::Snapshot> snapshot;
  };

  std::shared_ptr<const LmdbEnvironment> environment_;
};

}  // namespace

std::unique_ptr<ByteStore> open_folder(const Place& place, Missing missing) {
  return std::make_unique<LmdbStore>(place, missing);
}

}  // namespace winnow::store
