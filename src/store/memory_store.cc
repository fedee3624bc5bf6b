// SPDX-License-Identifier: Apache-2.0
#include <mutex>
#include <shared_mutex>
#include <stdexcept>
#include <utility>

#include "store/byte_store.h"

namespace winnow::store {

namespace {

struct Content {
  Records records;
  std::map<std::string, std::shared_ptr<const Bytes>> values;
};

Records beginning_with(const Records& records, const std::string& prefix) {
  Records out;
  for (auto it = records.lower_bound(prefix); it != records.end() && it->first.starts_with(prefix); ++it)
    out.insert(*it);
  return out;
}

std::optional<Bytes> find(const Records& records, const std::string& key) {
  const auto it = records.find(key);
  return it == records.end() ? std::nullopt : std::optional(it->second);
}

class MemoryChange : public Change {
 public:
  explicit MemoryChange(Content& content) : content_(content) {}

  std::optional<Bytes> record(const std::string& key) override { return find(content_.records, key); }
  Records records(const std::string& prefix) override { return beginning_with(content_.records, prefix); }
  void put_record(const std::string& key, std::span<const std::byte> bytes) override {
    content_.records.insert_or_assign(key, Bytes(bytes.begin(), bytes.end()));
  }
  void erase_record(const std::string& key) override { content_.records.erase(key); }
  void add_value(const std::string& key, std::size_t size, const std::function<void(ByteSink&)>& fill) override {
    MemorySink sink;
    fill(sink);
    if (sink.bytes().size() != size) throw std::logic_error("a value has not the bytes that were announced");
    content_.values.insert_or_assign(key, std::make_shared<const Bytes>(sink.bytes()));
  }
  void erase_value(const std::string& key) override { content_.values.erase(key); }

 private:
  Content& content_;
};

class MemoryStore : public ByteStore {
 public:
  const std::string& name() const override { return name_; }

  std::optional<Bytes> record(const std::string& key) const override {
    const std::shared_lock lock(mutex_);
    return find(content_.records, key);
  }
  Records records(const std::string& prefix) const override {
    const std::shared_lock lock(mutex_);
    return beginning_with(content_.records, prefix);
  }
  std::optional<Lease> value(const std::string& key, std::span<const ByteRange> ranges) const override {
    const std::shared_lock lock(mutex_);
    const auto it = content_.values.find(key);
    if (it == content_.values.end()) return std::nullopt;
    const std::span<const std::byte> all(*it->second);
    Lease lease{all.size(), {}, it->second};
    for (const auto& range : ranges) lease.parts.push_back(part_of(all, range));
    return lease;
  }
  void change(const std::function<void(Change&)>& make) override {
    const std::unique_lock lock(mutex_);
    Content changed = content_;  // values are shared
    MemoryChange step(changed);
    make(step);
    content_ = std::move(changed);
  }

 private:
  std::string name_ = "memory";
  mutable std::shared_mutex mutex_;
  Content content_;
};

}  // namespace

std::unique_ptr<ByteStore> open_memory() { return std::make_unique<MemoryStore>(); }

}  // namespace winnow::store
