// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "server/sessions/session_store.h"

namespace winnow::server {

/// Conversations that are being answered. Thread-safe.
class BusySessions {
 public:
  /// Returns false if the conversation is already being answered.
  bool add(const SessionKey& key);
  void remove(const SessionKey& key);

 private:
  std::mutex mutex_;
  std::set<SessionKey> keys_;
};

/// The next turn of a conversation. During its lifetime, this server begins no other turn of it.
class SessionTurn {
 public:
  /// `store` outlives keep(). The key is in `busy`.
  SessionTurn(SessionStore& store, std::shared_ptr<BusySessions> busy, SessionKey key, SessionRecord before);
  ~SessionTurn();
  SessionTurn(const SessionTurn&) = delete;
  SessionTurn& operator=(const SessionTurn&) = delete;

  /// Earlier messages.
  const std::vector<AskedMessage>& before() const { return record_.messages; }
  /// Stores the turn's messages and the answer. Throws ApiError: 409 if another server has stored a turn meanwhile, 503
  /// for a store that cannot be written.
  void keep(std::vector<AskedMessage> messages, Message answer);

 private:
  SessionStore& store_;
  std::shared_ptr<BusySessions> busy_;  ///< shared, since a turn may outlive the server's other parts
  SessionKey key_;
  SessionRecord record_;
};

/// The stored conversations of all clients. Thread-safe.
class Sessions {
 public:
  /// `where` is that of a SessionStore; empty: nothing is stored. Throws UsageError, InputError.
  explicit Sessions(const std::string& where);

  /// Throws ApiError (501) if nothing is stored.
  SessionStore& store();

  /// Continues or begins a conversation. Throws ApiError: 409 while it is being answered, 503 for a store that cannot
  /// be read.
  std::shared_ptr<SessionTurn> begin(const SessionKey& key);

 private:
  std::optional<SessionStore> store_;
  std::shared_ptr<BusySessions> busy_ = std::make_shared<BusySessions>();
};

}  // namespace winnow::server
