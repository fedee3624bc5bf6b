// SPDX-License-Identifier: Apache-2.0
#include "server/openai/cache_fields.h"

#include <spdlog/fmt/fmt.h>

#include "base/printable.h"
#include "policy/suggest.h"
#include "server/openai/errors.h"
#include "winnow/policy/method.h"

namespace winnow::server {

namespace {

/// What `parse` makes of a text, with its field named where it cannot be.
template <class Parse>
auto parsed(const std::string& path, const Parse& parse) {
  try {
    return parse();
  } catch (const UsageError& error) {
    throw FieldError(path, error.what());
  }
}

/// A budget is a text, or a number of entries.
std::optional<std::string> budget_text(Fields& fields) {
  const RequestJson* const value = fields.any("budget");
  if (value == nullptr || !value->is_number()) return fields.text("budget");
  return std::to_string(integer_at(*value, fields.path("budget"), 1, std::numeric_limits<int>::max()));
}

void refuse_what_is_missing(Fields& fields) {
  for (const char* const name : {"session", "documents", "ask"}) {
    if (fields.any(name) != nullptr)
      throw NotImplemented(fields.path(name), fmt::format("{} is not implemented: leave it out", fields.path(name)));
  }
}

void refuse_unknown(const Fields& fields) {
  const auto unread = fields.unread();
  if (unread.empty()) return;
  throw FieldError(fields.path(unread.front()), fmt::format("winnow has no field {}: {}", brief(unread.front()),
                                                            policy::suggest(unread.front(), fields.known())));
}

}  // namespace

Keeping read_keeping(Fields& fields, const RequestDefaults& defaults) {
  Keeping out{defaults.keep, defaults.protocol};
  const RequestJson* const object = fields.object("winnow");
  if (object == nullptr) return out;
  Fields inner(*object, "winnow.");
  if (const auto kv = inner.text("kv")) out.keep.spec = parsed(inner.path("kv"), [&kv] { return Spec::parse(*kv); });
  const auto budget = budget_text(inner);
  if (!budget && !out.keep.spec.method().needs_budget()) out.keep.budget.reset();  // the server's is for another method
  if (budget) out.keep.budget = parsed(inner.path("budget"), [&budget] { return Budget::parse(*budget); });
  if (const auto type = inner.text("kv_type"))
    out.keep.kv_type = parsed(inner.path("kv_type"), [&type] { return KvType::parse(*type); });
  const auto protocol = inner.word("protocol", {"question-aware", "question-agnostic"});
  if (protocol) out.protocol = *protocol == "question-aware" ? Protocol::aware : Protocol::agnostic;
  refuse_what_is_missing(inner);
  refuse_unknown(inner);
  parsed(inner.path("budget"), [&out] { return out.keep.check(); });
  return out;
}

}  // namespace winnow::server
