// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/answers/conversation.h"
#include "server/hidden_place.h"
#include "store/byte_store.h"

namespace winnow::server {

/// A session's owner and its name.
struct SessionKey {
  std::string owner;  ///< an API key; empty where none are needed. Only its hash is stored.
  std::string name;

  auto operator<=>(const SessionKey&) const = default;
};

/// Throws UsageError unless it has 1 to 200 bytes of UTF-8 without control characters.
void check_session_name(const std::string& name);

/// A conversation as it is stored.
struct SessionRecord {
  std::string id = {};  ///< another one when a session is begun again under its name
  std::vector<AskedMessage> messages = {};
  std::uint64_t turns = 0;  ///< that have been kept since it began
  std::int64_t used = 0;    ///< seconds since 1970
};

/// Conversations in a folder or on a Redis server: docs/file-formats.md. Thread-safe, and any number of servers may
/// share one. What put() has returned from survives the end of the process. All throw InputError when the store cannot
/// be reached, read or written or is damaged.
class SessionStore {
 public:
  /// `where` is a folder or redis[s]://…. Throws UsageError, InputError: also for a store of something else.
  explicit SessionStore(const std::string& where);

  std::optional<SessionRecord> get(const SessionKey& key) const;
  /// Sessions of `owner`, by name.
  std::vector<std::pair<std::string, SessionRecord>> list(const std::string& owner) const;
  /// Stores the next turn. Returns false, and changes nothing, when there is no session with this id and one turn less;
  /// the first turn needs that there is none.
  bool put(const SessionKey& key, const SessionRecord& record);
  /// Returns whether there was one.
  bool remove(const SessionKey& key);

  /// Where the store is.
  const HiddenPlace& place() const { return place_; }

 private:
  std::unique_ptr<store::ByteStore> bytes_;
  HiddenPlace place_;
};

}  // namespace winnow::server
