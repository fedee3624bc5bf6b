// SPDX-License-Identifier: Apache-2.0
// A store in a folder. A step writes its values, then replaces the file of records: its rename makes all of the step
// happen at once. Readers take no lock. They may be late by a step, as if they had come before it.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cerrno>
#include <random>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "base/format.h"
#include "base/printable.h"
#include "store/changed_records.h"
#include "store/folder_files.h"
#include "store/stores.h"
#include "winnow/error.h"

namespace winnow::store {

namespace {

/// Larger records, such as those of conversations, are values, since a step writes all others again.
constexpr std::size_t kMostFiled = 1024;

std::string new_record_key() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}record", random(), random());
}

/// Bytes of a record. Nullopt if its value is gone: a later step has replaced it.
std::optional<Bytes> bytes_of(const FolderFiles& files, const FiledRecord& record) {
  if (record.value.empty()) return Bytes(record.bytes.begin(), record.bytes.end());
  const auto file = files.value(record.value);
  return file ? std::optional(file->read_all()) : std::nullopt;
}

/// Calls read(records) until it returns something. It returns nothing if a value of these records is gone.
template <class Read>
auto read_snapshot(const FolderFiles& files, const Read& read) {
  for (auto records = files.records();;) {
    if (auto out = read(*records)) return std::move(*out);
    auto next = files.records();
    if (next == records) {
      const auto& [where, contents] = files.folder().place();
      throw InputError(fmt::format("the {} in {} are damaged: a record's value is missing", contents, where));
    }
    records = std::move(next);
  }
}

std::optional<Bytes> read_record(const FolderFiles& files, const std::string& key) {
  using Found = std::optional<Bytes>;
  return read_snapshot(files, [&](const RecordFile& records) -> std::optional<Found> {
    const auto* const record = records.find(key);
    if (record == nullptr) return Found();
    auto bytes = bytes_of(files, *record);
    return bytes ? std::optional<Found>(std::move(bytes)) : std::nullopt;
  });
}

Records read_records(const FolderFiles& files, const std::string& prefix) {
  return read_snapshot(files, [&](const RecordFile& records) -> std::optional<Records> {
    Records out;
    for (const auto& record : records.beginning_with(prefix)) {
      auto bytes = bytes_of(files, record);
      if (!bytes) return std::nullopt;
      out.emplace_hint(out.end(), record.key, std::move(*bytes));
    }
    return out;
  });
}

class FolderChange : public ChangedRecords {
 public:
  /// REQUIRES: the lock of the files.
  explicit FolderChange(const FolderFiles& files) : files_(files), before_(files.records()) {}

  void add_value(const std::string& key, std::size_t size, const std::function<void(ByteSink&)>& fill) override {
    added_bytes_ += size;
    auto& file = values_.emplace_back(files_.new_value(key));
    step_.added.push_back(key);
    fill(file);
    if (file.written() != size) throw std::logic_error("a value does not have as many bytes as announced");
  }
  void erase_value(const std::string& key) override { step_.erased.push_back(key); }

  /// Does nothing if nothing changes.
  void commit() {
    if (changed().empty() && step_.added.empty() && step_.erased.empty()) return;
    auto records = records_after();
    std::erase_if(step_.erased, [this](const auto& key) {
      return std::find(step_.added.begin(), step_.added.end(), key) != step_.added.end();
    });
    files_.replace_records(records, step_, std::move(values_));
  }
  /// Verb phrase of the failed action, for a sentence.
  std::string doing() const {
    return added_bytes_ > 0 ? fmt::format("add {} to", format_bytes(added_bytes_)) : "change";
  }

 private:
  std::optional<Bytes> stored_record(const std::string& key) override { return read_record(files_, key); }
  Records stored_records(const std::string& prefix) override { return read_records(files_, prefix); }

  /// The records after the step, in order. Adds and erases the values of large ones.
  std::vector<FiledRecord> records_after() {
    std::vector<FiledRecord> out;
    for (const auto& record : before_->beginning_with("")) {
      if (!changed().contains(record.key))
        out.push_back(record);
      else if (!record.value.empty())
        erase_value(record.value);
    }
    for (const auto& [key, bytes] : changed()) {
      if (bytes) out.push_back(filed(key, *bytes));
    }
    std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.key < b.key; });
    return out;
  }
  FiledRecord filed(const std::string& key, const Bytes& bytes) {
    if (bytes.size() <= kMostFiled) return {key, bytes};
    FiledRecord out{key, {}, new_record_key()};
    add_value(out.value, bytes.size(), [&](ByteSink& to) { to.write(bytes); });
    return out;
  }

  const FolderFiles& files_;
  std::shared_ptr<const RecordFile> before_;
  std::vector<PartFile> values_;
  StepValues step_;
  std::size_t added_bytes_ = 0;
};

/// Calls read(). Errors of the system become sentences.
template <class Read>
auto reading(const FolderFiles& files, const Read& read) {
  try {
    return read();
  } catch (const std::system_error& error) {
    files.folder().fail("read", error.code().value());
  }
}

class FolderStore : public ByteStore {
 public:
  FolderStore(const Place& place, Missing missing) : files_(place, missing) {}

  const std::string& name() const override { return files_.folder().place().where; }

  std::optional<Bytes> record(const std::string& key) const override {
    return reading(files_, [&] { return read_record(files_, key); });
  }
  Records records(const std::string& prefix) const override {
    return reading(files_, [&] { return read_records(files_, prefix); });
  }
  std::optional<Lease> value(const std::string& key, std::span<const ByteRange> ranges) const override {
    return reading(files_, [&] {
      const auto file = files_.value(key);
      return file ? std::optional(file->read(ranges)) : std::nullopt;
    });
  }
  void change(const std::function<void(Change&)>& make) override {
    std::string doing = "change";
    try {
      const Descriptor lock = files_.lock();
      FolderChange change(files_);
      try {
        make(change);
        change.commit();
      } catch (const std::system_error&) {
        doing = change.doing();
        throw;
      }
    } catch (const std::system_error& error) {
      files_.folder().fail(doing, error.code().value());
    }
  }

 private:
  FolderFiles files_;
};

}  // namespace

std::unique_ptr<ByteStore> open_folder(const Place& place, Missing missing) {
  return std::make_unique<FolderStore>(place, missing);
}

}  // namespace winnow::store
