// SPDX-License-Identifier: Apache-2.0
#include "server/conversations/conversation_store.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/json.h"
#include "base/printable.h"
#include "server/digest.h"
#include "server/utf8.h"
#include "winnow/error.h"

namespace winnow::server {

namespace {

using StoredJson = nlohmann::json;

const std::string kFormatKey = "format";
constexpr std::string_view kFormat = "winnow sessions 1";

std::span<const std::byte> record_bytes(std::string_view text) { return std::as_bytes(std::span(text)); }
std::string_view record_text(const store::Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Prefix of the keys of an owner's records: a digest, so that the store does not reveal API keys.
std::string prefix_of(const std::string& owner) {
  constexpr std::size_t kDigits = 32;
  return "s/" + digest_of("winnow sessions of " + owner).substr(0, kDigits) + "/";
}

std::string record_key(const ConversationKey& key) { return prefix_of(key.owner) + key.name; }

Role role_named(const std::string& name) {
  for (const auto role : {Role::user, Role::assistant, Role::system, Role::tool}) {
    if (name == name_of(role)) return role;
  }
  throw UsageError(fmt::format("unknown role {}", name));
}

StoredJson print(const AskedMessage& message) {
  const auto& [said, question] = message;
  StoredJson out{{"role", name_of(said.role)}, {"parts", {said.content.substr(0, question)}}};
  if (question == 0) out["parts"].clear();
  out["parts"].push_back(said.content.substr(question));
  for (const auto& [name, text] :
       {std::pair{"reasoning", said.reasoning}, {"call_id", said.call_id}, {"tool_name", said.tool_name}}) {
    if (!text.empty()) out[name] = text;
  }
  for (const auto& call : said.calls)
    out["calls"].push_back({{"id", call.id}, {"name", call.name}, {"arguments", call.arguments}});
  return out;
}

AskedMessage parse_message(const StoredJson& json) {
  AskedMessage out{.said = {.role = role_named(json.at("role")), .content = {}}};
  Message& said = out.said;
  for (const auto& part : json.at("parts")) {
    out.question = said.content.size();
    said.content += part.get<std::string>();
  }
  said.reasoning = json.value("reasoning", "");
  said.call_id = json.value("call_id", "");
  said.tool_name = json.value("tool_name", "");
  for (const auto& call : json.value("calls", StoredJson::array()))
    said.calls.push_back({call.at("id"), call.at("name"), call.at("arguments")});
  return out;
}

std::string print(const ConversationRecord& record) {
  StoredJson messages = StoredJson::array();
  for (const auto& message : record.messages) messages.push_back(print(message));
  const StoredJson json{{"id", record.id}, {"messages", messages}, {"turns", record.turns}, {"used", record.used}};
  return json.dump(-1, ' ', false, StoredJson::error_handler_t::replace);
}

ConversationRecord parse(const store::Bytes& bytes, const std::string& where, std::string_view name) {
  ConversationRecord out;
  try {
    const auto json = parse_json<StoredJson>(record_text(bytes));
    for (const auto& message : json.at("messages")) out.messages.push_back(parse_message(message));
    json.at("id").get_to(out.id);
    json.at("turns").get_to(out.turns);
    json.at("used").get_to(out.used);
  } catch (const std::exception& error) {
    throw InputError(fmt::format("the session {} in {} is damaged: {}", name, where, error.what()));
  }
  return out;
}

}  // namespace

void check_conversation_name(const std::string& name) {
  constexpr std::size_t kMost = 200;
  if (name.empty() || name.size() > kMost)
    throw UsageError(fmt::format("the name of a session has {} bytes: give 1 to {}", name.size(), kMost));
  const auto is_control = [](unsigned char c) { return c < ' ' || c == 0x7f; };
  if (std::any_of(name.begin(), name.end(), is_control) || !is_utf8(name))
    throw UsageError(
        fmt::format("the name of a session must be UTF-8 without control characters, not {}", brief(name)));
}

ConversationStore::ConversationStore(const std::string& where)
    : bytes_(store::open({where, "sessions"}, store::Missing::is_created)), place_(bytes_->name()) {
  bytes_->change([this](store::Change& change) {
    const auto format = change.record(kFormatKey);
    if (!format) return change.put_record(kFormatKey, record_bytes(kFormat));
    if (record_text(*format) != kFormat)
      throw InputError(fmt::format("{} is a store of something other than sessions: give another one", bytes_->name()));
  });
}

std::optional<ConversationRecord> ConversationStore::get(const ConversationKey& key) const {
  const auto found = bytes_->record(record_key(key));
  if (!found) return std::nullopt;
  return parse(*found, bytes_->name(), key.name);
}

std::vector<std::pair<std::string, ConversationRecord>> ConversationStore::list(const std::string& owner) const {
  const auto prefix = prefix_of(owner);
  std::vector<std::pair<std::string, ConversationRecord>> out;
  for (const auto& [key, bytes] : bytes_->records(prefix)) {
    auto name = key.substr(prefix.size());
    auto record = parse(bytes, bytes_->name(), name);
    out.emplace_back(std::move(name), std::move(record));
  }
  return out;
}

bool ConversationStore::put(const ConversationKey& key, const ConversationRecord& record) {
  const auto place = record_key(key);
  const auto text = print(record);
  bool done = false;
  bytes_->change([&](store::Change& change) {
    const auto stored = change.record(place);
    const auto now = stored ? parse(*stored, bytes_->name(), key.name) : ConversationRecord{.id = record.id};
    done = record.id == now.id && record.turns == now.turns + 1;
    if (done) change.put_record(place, record_bytes(text));
  });
  return done;
}

bool ConversationStore::remove(const ConversationKey& key) {
  bool was_there = false;
  bytes_->change([&](store::Change& change) {
    was_there = change.record(record_key(key)).has_value();
    change.erase_record(record_key(key));
  });
  return was_there;
}

}  // namespace winnow::server
