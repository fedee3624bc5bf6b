// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>

#include "store/byte_store.h"

namespace winnow::store {

/// A change that collects what it does to records until it is committed.
class ChangedRecords : public Change {
 public:
  std::optional<Bytes> record(const std::string& key) override;
  Records records(const std::string& prefix) override;
  void put_record(const std::string& key, std::span<const std::byte> bytes) override;
  void erase_record(const std::string& key) override;

 protected:
  /// Records by key; nullopt: to be erased.
  const std::map<std::string, std::optional<Bytes>>& changed() const { return changed_; }
  void forget() { changed_.clear(); }

 private:
  /// Records before the change.
  virtual std::optional<Bytes> stored_record(const std::string& key) = 0;
  virtual Records stored_records(const std::string& prefix) = 0;

  std::map<std::string, std::optional<Bytes>> changed_;
};

}  // namespace winnow::store
