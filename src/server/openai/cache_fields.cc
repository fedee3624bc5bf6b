// SPDX-License-Identifier: Apache-2.0
#include "server/openai/cache_fields.h"

#include <spdlog/fmt/fmt.h>

#include "base/printable.h"
#include "documents/asking.h"
#include "policy/suggest.h"
#include "server/conversations/conversation_store.h"
#include "server/openai/errors.h"
#include "winnow/policy/method.h"

namespace winnow::server {

namespace {

/// Calls `parse`, and adds the field's name to its errors.
template <class Parse>
auto parsed(const std::string& path, const Parse& parse) {
  try {
    return parse();
  } catch (const UsageError& error) {
    throw FieldError(path, error.what());
  }
}

/// Reads a budget: a text, or a number of entries.
std::optional<std::string> budget_text(Fields& fields) {
  const Json* const value = fields.any("budget");
  if (value == nullptr || !value->is_number()) return fields.text("budget");
  return std::to_string(integer_at(*value, fields.path("budget"), 1, std::numeric_limits<int>::max()));
}

/// Reads the documents to ask, and how to ask them. `given` is the request's budget.
void read_asking(Fields& fields, const std::optional<Budget>& given, Keeping& out) {
  const auto ask = fields.text("ask");
  const Json* const names = fields.list("documents");
  if (names == nullptr) {
    if (ask) throw FieldError(fields.path("ask"), "winnow.ask is for documents: name them in winnow.documents");
    return;
  }
  if (names->empty())
    throw FieldError(fields.path("documents"), "winnow.documents is an empty list: name at least one");
  for (std::size_t i = 0; i < names->size(); ++i)
    out.documents.push_back(text_at((*names)[i], fmt::format("{}[{}]", fields.path("documents"), i)));
  if (out.conversation)
    throw FieldError(fields.path("session"),
                     "a session cannot be combined with winnow.documents: leave one of them out");
  for (const char* const other : {"kv", "protocol"}) {
    if (fields.any(other) != nullptr)
      throw FieldError(fields.path(other),
                       fmt::format("{} cannot be combined with winnow.documents: choose the method with winnow.ask",
                                   fields.path(other)));
  }
  if (ask) out.ask.method = parsed(fields.path("ask"), [&ask] { return AskSpec::parse(*ask); });
  out.ask.budget = given;
  out.ask.kv_type = out.keep.kv_type;
  out.keep = parsed(fields.path("budget"), [&out] { return documents::cache_of(out.ask); });
}

/// Reads the session's name from the header or the object `winnow`; empty if there is none. They must not differ, since
/// load balancers only see the header.
std::optional<std::string> conversation_name(const std::string& header, Fields& fields) {
  auto name = fields.text("session");
  if (name && !header.empty() && *name != header)
    throw FieldError(
        fields.path("session"),
        fmt::format("winnow.session is {}, but the header Winnow-Session is {}: give one of them, or the same in both",
                    brief(*name), brief(header)));
  if (name || header.empty()) return name;
  return header;
}

/// Sets the options that a stored conversation needs.
void keep_conversation(const std::string& name, Keeping& keeping) {
  parsed("winnow.session", [&name] { check_conversation_name(name); });
  keeping.conversation = name;
  keeping.protocol = Protocol::agnostic;
}

}  // namespace

void refuse_unknown(const Fields& fields) {
  const auto unread = fields.unread();
  if (unread.empty()) return;
  throw FieldError(fields.path(unread.front()),
                   fmt::format("the object winnow has no field {}: {}", brief(unread.front()),
                               policy::suggest(unread.front(), fields.known())));
}

CacheOptions read_cache(Fields& fields, const CacheChoice& defaults, Protocol protocol) {
  CacheChoice choice = defaults;
  const auto kv = fields.text("kv");
  const auto budget = budget_text(fields);
  if (kv) {
    parsed(fields.path("kv"), [&] { return choice.name_method(*kv); });
  } else if (budget && choice.method_name() == "full") {
    choice.method = Recommended::best;  // full needs no budget
  }
  if (budget) choice.budget = parsed(fields.path("budget"), [&budget] { return Budget::parse(*budget); });
  if (const auto type = fields.text("kv_type"))
    choice.kv_type = parsed(fields.path("kv_type"), [&type] { return KvType::parse(*type); });
  CacheOptions out = choice.with(protocol);
  if (!budget && !out.spec.method().needs_budget()) out.budget.reset();  // the default belongs to another method
  parsed(fields.path("budget"), [&out] { return out.check(); });
  return out;
}

Keeping read_keeping(Fields& fields, const RequestDefaults& defaults, const std::string& session) {
  Keeping out{{}, defaults.protocol};
  const Json* const object = fields.object("winnow");
  if (object == nullptr) {
    if (!session.empty()) keep_conversation(session, out);
    out.keep = defaults.keep.with(out.protocol);
    return out;
  }
  Fields inner(*object, "winnow.");
  const auto protocol = inner.word("protocol", {"question-aware", "question-agnostic"});
  if (protocol) out.protocol = *protocol == "question-aware" ? Protocol::aware : Protocol::agnostic;
  if (const auto name = conversation_name(session, inner)) keep_conversation(*name, out);
  out.keep = read_cache(inner, defaults.keep, out.protocol);
  if (out.conversation && protocol == "question-aware")
    throw FieldError(
        inner.path("protocol"),
        "a session is compressed before later questions are known, so its protocol must be question-agnostic");
  read_asking(inner, inner.any("budget") == nullptr ? std::nullopt : out.keep.budget, out);
  refuse_unknown(inner);
  return out;
}

}  // namespace winnow::server
