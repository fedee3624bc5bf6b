// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <shared_mutex>
#include <stdexcept>
#include <utility>

#include "store/byte_store.h"

namespace winnow::test {

struct MemoryContent {
  store::Records records;
  std::map<std::string, std::shared_ptr<const store::Bytes>> values;
};

inline store::Records beginning_with(const store::Records& records, const std::string& prefix) {
  store::Records out;
  for (auto it = records.lower_bound(prefix); it != records.end() && it->first.starts_with(prefix); ++it)
    out.insert(*it);
  return out;
}

inline std::optional<store::Bytes> find(const store::Records& records, const std::string& key) {
  const auto it = records.find(key);
  return it == records.end() ? std::nullopt : std::optional(it->second);
}

class MemoryChange : public store::Change {
 public:
  explicit MemoryChange(MemoryContent& content) : content_(content) {}

  std::optional<store::Bytes> record(const std::string& key) override { return find(content_.records, key); }
  store::Records records(const std::string& prefix) override { return beginning_with(content_.records, prefix); }
  void put_record(const std::string& key, std::span<const std::byte> bytes) override {
    content_.records.insert_or_assign(key, store::Bytes(bytes.begin(), bytes.end()));
  }
  void erase_record(const std::string& key) override { content_.records.erase(key); }
  void add_value(const std::string& key, std::size_t size, const std::function<void(ByteSink&)>& fill) override {
    MemorySink sink;
    fill(sink);
    if (sink.bytes().size() != size) throw std::logic_error("a value does not have as many bytes as announced");
    content_.values.insert_or_assign(key, std::make_shared<const store::Bytes>(sink.bytes()));
  }
  void erase_value(const std::string& key) override { content_.values.erase(key); }

 private:
  MemoryContent& content_;
};

class MemoryStore : public store::ByteStore {
 public:
  const std::string& name() const override { return name_; }

  std::optional<store::Bytes> record(const std::string& key) const override {
    const std::shared_lock lock(mutex_);
    return find(content_.records, key);
  }
  store::Records records(const std::string& prefix) const override {
    const std::shared_lock lock(mutex_);
    return beginning_with(content_.records, prefix);
  }
  std::optional<store::Lease> value(const std::string& key, std::span<const store::ByteRange> ranges) const override {
    const std::shared_lock lock(mutex_);
    const auto it = content_.values.find(key);
    if (it == content_.values.end()) return std::nullopt;
    const std::span<const std::byte> all(*it->second);
    store::Lease lease{all.size(), {}, it->second};
    for (const auto& range : ranges) lease.parts.push_back(store::part_of(all, range));
    return lease;
  }
  void change(const std::function<void(store::Change&)>& make) override {
    const std::unique_lock lock(mutex_);
    MemoryContent changed = content_;  // copies pointers, not values
    MemoryChange step(changed);
    make(step);
    content_ = std::move(changed);
  }

 private:
  std::string name_ = "memory";
  mutable std::shared_mutex mutex_;
  MemoryContent content_;
};

/// A private store in memory.
inline std::unique_ptr<store::ByteStore> open_memory() { return std::make_unique<MemoryStore>(); }

}  // namespace winnow::test
