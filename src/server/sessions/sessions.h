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

/// The sessions that are being answered. Thread-safe.
class BusySessions {
 public:
  /// Returns false when it is there.
  bool add(const SessionKey& key);
  void remove(const SessionKey& key);

 private:
  std::mutex mutex_;
  std::set<SessionKey> keys_;
};

/// The next turn of a session. While it lives nobody else takes a turn on this server.
class SessionTurn {
 public:
  /// `store` outlives keep(). The key is busy.
  SessionTurn(SessionStore& store, std::shared_ptr<BusySessions> busy, SessionKey key, SessionRecord before);
  ~SessionTurn();
  SessionTurn(const SessionTurn&) = delete;
  SessionTurn& operator=(const SessionTurn&) = delete;

  /// Messages that were said before.
  const std::vector<AskedMessage>& before() const { return record_.messages; }
  /// Keeps what is said now and the answer to it. Throws ApiError: 409 when another server has taken a turn meanwhile,
  /// 503 for a store that cannot be written.
  void keep(std::vector<AskedMessage> messages, Message answer);

 private:
  SessionStore& store_;
  std::shared_ptr<BusySessions> busy_;  ///< a turn may end after the server's other parts
  SessionKey key_;
  SessionRecord record_;
};

/// The sessions of all clients. Thread-safe.
class Sessions {
 public:
  /// `where` is that of a SessionStore; empty: there are no sessions. Throws UsageError, InputError.
  explicit Sessions(const std::string& where);

  /// Throws ApiError (501) where there are no sessions.
  SessionStore& store();

  /// A session goes on, or begins. Throws ApiError: 409 while it is being answered, 503 for a store that cannot be
  /// read.
  std::shared_ptr<SessionTurn> begin(const SessionKey& key);

 private:
  std::optional<SessionStore> store_;
  std::shared_ptr<BusySessions> busy_ = std::make_shared<BusySessions>();
};

}  // namespace winnow::server
