// SPDX-License-Identifier: Apache-2.0
#include "server/conversations/conversation_routes.h"

#include <spdlog/fmt/fmt.h>

#include "base/printable.h"
#include "server/conversations/conversation_error.h"
#include "server/openai/answer.h"

namespace winnow::server {

namespace {

Json about(const std::string& name, const ConversationRecord& record) {
  return {{"name", name},
          {"object", "session"},
          {"messages", record.messages.size()},
          {"turns", record.turns},
          {"used", record.used}};
}

ApiError unknown(const ConversationKey& key) {
  return ApiError(404, fmt::format("there is no session {}", brief(key.name)));
}

Json json_of(const Message& message) {
  Json out{{"role", name_of(message.role)}, {"content", message.content}};
  if (!message.reasoning.empty()) out["reasoning_content"] = message.reasoning;
  if (!message.call_id.empty()) out["tool_call_id"] = message.call_id;
  for (const auto& call : message.calls) {
    out["tool_calls"].push_back(
        {{"id", call.id}, {"type", "function"}, {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
  }
  return out;
}

}  // namespace

HttpReply conversations_reply(const ConversationStore& store, const std::string& owner) {
  Json data = Json::array();
  for (const auto& [name, record] : with_store(store, [&] { return store.list(owner); }))
    data.push_back(about(name, record));
  return {.body = text_of({{"object", "list"}, {"data", data}})};
}

HttpReply conversation_reply(const ConversationStore& store, const ConversationKey& key) {
  const auto record = with_store(store, [&] { return store.get(key); });
  if (!record) throw unknown(key);
  Json out = about(key.name, *record);
  out["messages"] = Json::array();
  for (const auto& message : record->messages) out["messages"].push_back(json_of(message.said));
  return {.body = text_of(out)};
}

HttpReply remove_conversation(ConversationStore& store, const ConversationKey& key) {
  if (!with_store(store, [&] { return store.remove(key); })) throw unknown(key);
  return {.body = text_of({{"name", key.name}, {"object", "session"}, {"deleted", true}})};
}

}  // namespace winnow::server
