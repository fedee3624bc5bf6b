// SPDX-License-Identifier: Apache-2.0
#include "server/sessions/session_store.h"

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

/// What the keys of an owner's records begin with. Whoever can read the store does not learn API keys.
std::string prefix_of(const std::string& owner) {
  constexpr std::size_t kDigits = 32;
  return "s/" + digest_of("winnow sessions of " + owner).substr(0, kDigits) + "/";
}

std::string record_key(const SessionKey& key) { return prefix_of(key.owner) + key.name; }

std::string print(const SessionRecord& record) {
  StoredJson messages = StoredJson::array();
  for (const auto& message : record.messages)
    messages.push_back({{"role", role_name(message.role)}, {"parts", message.parts}});
  const StoredJson json{{"id", record.id}, {"messages", messages}, {"turns", record.turns}, {"used", record.used}};
  return json.dump(-1, ' ', false, StoredJson::error_handler_t::replace);
}

SessionRecord parse(const store::Bytes& bytes, const std::string& where, std::string_view name) {
  SessionRecord out;
  try {
    const auto json = parse_json<StoredJson>(record_text(bytes));
    for (const auto& message : json.at("messages"))
      out.messages.push_back({role_named(message.at("role")), message.at("parts")});
    json.at("id").get_to(out.id);
    json.at("turns").get_to(out.turns);
    json.at("used").get_to(out.used);
  } catch (const std::exception& error) {
    throw InputError(fmt::format("the session {} in {} is damaged: {}", name, where, error.what()));
  }
  return out;
}

}  // namespace

void check_session_name(const std::string& name) {
  constexpr std::size_t kMost = 200;
  if (name.empty() || name.size() > kMost)
    throw UsageError(fmt::format("the name of a session has 1 to {} bytes, and not {}", kMost, name.size()));
  const auto is_control = [](unsigned char c) { return c < ' ' || c == 0x7f; };
  if (std::any_of(name.begin(), name.end(), is_control) || !is_utf8(name))
    throw UsageError(fmt::format("the name of a session is UTF-8 without control characters, and not {}", brief(name)));
}

SessionStore::SessionStore(const std::string& where)
    : bytes_(store::open({where, "sessions"}, store::Missing::is_created)), place_(bytes_->name()) {
  bytes_->change([this](store::Change& change) {
    const auto format = change.record(kFormatKey);
    if (!format) return change.put_record(kFormatKey, record_bytes(kFormat));
    if (record_text(*format) != kFormat)
      throw InputError(fmt::format("{} has something else than sessions: choose another place", bytes_->name()));
  });
}

std::optional<SessionRecord> SessionStore::get(const SessionKey& key) const {
  const auto found = bytes_->record(record_key(key));
  if (!found) return std::nullopt;
  return parse(*found, bytes_->name(), key.name);
}

std::vector<std::pair<std::string, SessionRecord>> SessionStore::list(const std::string& owner) const {
  const auto prefix = prefix_of(owner);
  std::vector<std::pair<std::string, SessionRecord>> out;
  for (const auto& [key, bytes] : bytes_->records(prefix)) {
    auto name = key.substr(prefix.size());
    auto record = parse(bytes, bytes_->name(), name);
    out.emplace_back(std::move(name), std::move(record));
  }
  return out;
}

bool SessionStore::put(const SessionKey& key, const SessionRecord& record) {
  const auto place = record_key(key);
  const auto text = print(record);
  bool done = false;
  bytes_->change([&](store::Change& change) {
    const auto stored = change.record(place);
    const auto now = stored ? parse(*stored, bytes_->name(), key.name) : SessionRecord{.id = record.id};
    done = record.id == now.id && record.turns == now.turns + 1;
    if (done) change.put_record(place, record_bytes(text));
  });
  return done;
}

bool SessionStore::remove(const SessionKey& key) {
  bool was_there = false;
  bytes_->change([&](store::Change& change) {
    was_there = change.record(record_key(key)).has_value();
    change.erase_record(record_key(key));
  });
  return was_there;
}

}  // namespace winnow::server
