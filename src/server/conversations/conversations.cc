// SPDX-License-Identifier: Apache-2.0
#include "server/conversations/conversations.h"

#include <spdlog/fmt/fmt.h>

#include <utility>

#include "base/clock.h"
#include "base/printable.h"
#include "server/conversations/conversation_error.h"
#include "server/openai/answer.h"
#include "server/openai/errors.h"

namespace winnow::server {

bool BusyConversations::add(const ConversationKey& key) {
  const std::lock_guard lock(mutex_);
  return keys_.insert(key).second;
}

void BusyConversations::remove(const ConversationKey& key) {
  const std::lock_guard lock(mutex_);
  keys_.erase(key);
}

ConversationTurn::ConversationTurn(ConversationStore& store, std::shared_ptr<BusyConversations> busy,
                                   ConversationKey key, ConversationRecord before)
    : store_(store), busy_(std::move(busy)), key_(std::move(key)), record_(std::move(before)) {}

ConversationTurn::~ConversationTurn() { busy_->remove(key_); }

void ConversationTurn::keep(std::vector<AskedMessage> messages, Message answer) {
  for (auto& message : messages) record_.messages.push_back(std::move(message));
  answer.role = Role::assistant;
  record_.messages.push_back({std::move(answer)});
  ++record_.turns;
  record_.used = seconds_since_1970();
  if (!with_store(store_, [this] { return store_.put(key_, record_); }))
    throw ApiError(409,
                   fmt::format("another request continued the session {} before this answer ended, so the answer was "
                               "not stored: send the turn again",
                               brief(key_.name)),
                   "winnow.session", "session_changed");
}

Conversations::Conversations(const std::string& where) {
  if (!where.empty()) store_.emplace(where);
}

ConversationStore& Conversations::store() {
  if (store_) return *store_;
  throw NotImplemented("winnow.session",
                       "this server stores no sessions: start it with --sessions and a folder or redis://HOST");
}

std::shared_ptr<ConversationTurn> Conversations::begin(const ConversationKey& key) {
  ConversationStore& stored = store();
  if (!busy_->add(key))
    throw ApiError(
        409,
        fmt::format("the session {} is busy with another request: send this one when that has ended", brief(key.name)),
        "winnow.session", "session_busy");
  const auto turn = [&](ConversationRecord before) {
    return std::make_shared<ConversationTurn>(stored, busy_, key, std::move(before));
  };
  try {
    return turn(
        with_store(stored, [&] { return stored.get(key); }).value_or(ConversationRecord{.id = new_id("session-")}));
  } catch (...) {
    busy_->remove(key);
    throw;
  }
}

}  // namespace winnow::server
