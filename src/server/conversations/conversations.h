// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "server/conversations/conversation_store.h"

namespace winnow::server {

/// Conversations that are being answered. Thread-safe.
class BusyConversations {
 public:
  /// Returns false if the conversation is already being answered.
  bool add(const ConversationKey& key);
  void remove(const ConversationKey& key);

 private:
  std::mutex mutex_;
  std::set<ConversationKey> keys_;
};

/// The next turn of a conversation. During its lifetime, this server begins no other turn of it.
class ConversationTurn {
 public:
  /// `store` outlives keep(). The key is in `busy`.
  ConversationTurn(ConversationStore& store, std::shared_ptr<BusyConversations> busy, ConversationKey key,
                   ConversationRecord before);
  ~ConversationTurn();
  ConversationTurn(const ConversationTurn&) = delete;
  ConversationTurn& operator=(const ConversationTurn&) = delete;

  /// Earlier messages.
  const std::vector<AskedMessage>& before() const { return record_.messages; }
  /// Stores the turn's messages and the answer. Throws ApiError: 409 if another server has stored a turn meanwhile, 503
  /// for a store that cannot be written.
  void keep(std::vector<AskedMessage> messages, Message answer);

 private:
  ConversationStore& store_;
  std::shared_ptr<BusyConversations> busy_;  ///< shared, since a turn may outlive the server's other parts
  ConversationKey key_;
  ConversationRecord record_;
};

/// The stored conversations of all clients. Thread-safe.
class Conversations {
 public:
  /// `where` is that of a ConversationStore; empty: nothing is stored. Throws UsageError, InputError.
  explicit Conversations(const std::string& where);

  /// Throws ApiError (501) if nothing is stored.
  ConversationStore& store();

  /// Continues or begins a conversation. Throws ApiError: 409 while it is being answered, 503 for a store that cannot
  /// be read.
  std::shared_ptr<ConversationTurn> begin(const ConversationKey& key);

 private:
  std::optional<ConversationStore> store_;
  std::shared_ptr<BusyConversations> busy_ = std::make_shared<BusyConversations>();
};

}  // namespace winnow::server
