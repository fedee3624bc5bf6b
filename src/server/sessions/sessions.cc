// SPDX-License-Identifier: Apache-2.0
#include "server/sessions/sessions.h"

#include <spdlog/fmt/fmt.h>

#include <utility>

#include "base/clock.h"
#include "base/printable.h"
#include "server/openai/answer.h"
#include "server/openai/errors.h"
#include "server/sessions/session_error.h"

namespace winnow::server {

bool BusySessions::add(const SessionKey& key) {
  const std::lock_guard lock(mutex_);
  return keys_.insert(key).second;
}

void BusySessions::remove(const SessionKey& key) {
  const std::lock_guard lock(mutex_);
  keys_.erase(key);
}

SessionTurn::SessionTurn(SessionStore& store, std::shared_ptr<BusySessions> busy, SessionKey key, SessionRecord before)
    : store_(store), busy_(std::move(busy)), key_(std::move(key)), record_(std::move(before)) {}

SessionTurn::~SessionTurn() { busy_->remove(key_); }

void SessionTurn::keep(std::vector<AskedMessage> messages, Message answer) {
  for (auto& message : messages) record_.messages.push_back(std::move(message));
  answer.role = Role::assistant;
  record_.messages.push_back({std::move(answer)});
  ++record_.turns;
  record_.used = seconds_since_1970();
  if (!with_store(store_, [this] { return store_.put(key_, record_); }))
    throw ApiError(409,
                   fmt::format("the session {} has gone on elsewhere while this was answered: the answer is not part "
                               "of it",
                               brief(key_.name)),
                   "winnow.session", "session_changed");
}

Sessions::Sessions(const std::string& where) {
  if (!where.empty()) store_.emplace(where);
}

SessionStore& Sessions::store() {
  if (store_) return *store_;
  throw NotImplemented("winnow.session",
                       "this server keeps no sessions: it needs --sessions, a folder or a Redis server");
}

std::shared_ptr<SessionTurn> Sessions::begin(const SessionKey& key) {
  SessionStore& sessions = store();
  if (!busy_->add(key))
    throw ApiError(409, fmt::format("the session {} is being answered: ask again when it has ended", brief(key.name)),
                   "winnow.session", "session_busy");
  const auto turn = [&](SessionRecord before) {
    return std::make_shared<SessionTurn>(sessions, busy_, key, std::move(before));
  };
  try {
    return turn(
        with_store(sessions, [&] { return sessions.get(key); }).value_or(SessionRecord{.id = new_id("session-")}));
  } catch (...) {
    busy_->remove(key);
    throw;
  }
}

}  // namespace winnow::server
