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

/// The owner and the name of a stored conversation; the name is the session's name.
struct ConversationKey {
  std::string owner;  ///< an API key; empty if none are needed. Only its hash is stored.
  std::string name;

  auto operator<=>(const ConversationKey&) const = default;
};

/// Throws UsageError unless it has 1 to 200 bytes of UTF-8 without control characters.
void check_conversation_name(const std::string& name);

/// A stored conversation.
struct ConversationRecord {
  std::string id = {};  ///< changes when a conversation is begun again under its name
  std::vector<AskedMessage> messages = {};
  std::uint64_t turns = 0;  ///< number stored since it began
  std::int64_t used = 0;    ///< seconds since 1970
};

/// Conversations in a folder or on a Redis server: docs/file-formats.md. Thread-safe; several servers may share one. A
/// conversation is durable when put() returns. All functions throw InputError if the store cannot be reached, read or
/// written, or is damaged.
class ConversationStore {
 public:
  /// `where` is a folder or redis[s]://…. Throws UsageError, InputError, also for a store of something else.
  explicit ConversationStore(const std::string& where);

  std::optional<ConversationRecord> get(const ConversationKey& key) const;
  /// Conversations of `owner`, by name.
  std::vector<std::pair<std::string, ConversationRecord>> list(const std::string& owner) const;
  /// Stores the next turn. Returns false, and changes nothing, unless the stored conversation has the same id and one
  /// turn less. The first turn requires that there is none.
  bool put(const ConversationKey& key, const ConversationRecord& record);
  /// Returns whether the conversation existed.
  bool remove(const ConversationKey& key);

  /// The store's location.
  const HiddenPlace& place() const { return place_; }

 private:
  std::unique_ptr<store::ByteStore> bytes_;
  HiddenPlace place_;
};

}  // namespace winnow::server
