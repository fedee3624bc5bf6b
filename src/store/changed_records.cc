// SPDX-License-Identifier: Apache-2.0
#include "store/changed_records.h"

namespace winnow::store {

std::optional<Bytes> ChangedRecords::record(const std::string& key) {
  if (const auto it = changed_.find(key); it != changed_.end()) return it->second;
  return stored_record(key);
}

Records ChangedRecords::records(const std::string& prefix) {
  Records out = stored_records(prefix);
  for (const auto& [key, bytes] : changed_) {
    if (!key.starts_with(prefix)) continue;
    out.erase(key);
    if (bytes) out.emplace(key, *bytes);
  }
  return out;
}

void ChangedRecords::put_record(const std::string& key, std::span<const std::byte> bytes) {
  changed_.insert_or_assign(key, Bytes(bytes.begin(), bytes.end()));
}

void ChangedRecords::erase_record(const std::string& key) { changed_.insert_or_assign(key, std::nullopt); }

}  // namespace winnow::store
