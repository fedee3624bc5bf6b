// SPDX-License-Identifier: Apache-2.0
#include "winnow/saved.h"

#include <spdlog/fmt/fmt.h>

#include <nlohmann/json.hpp>

#include "base/as_size.h"
#include "base/counted.h"
#include "base/format.h"
#include "base/printable.h"
#include "cli/inspect/inspect.h"
#include "cli/output.h"
#include "cli/wording.h"
#include "winnow/error.h"

namespace winnow::cli {

namespace {

/// Messages in the format of chat APIs.
nlohmann::ordered_json messages_json(const std::vector<Message>& messages) {
  auto out = nlohmann::ordered_json::array();
  for (const auto& message : messages) out.push_back({{"role", name_of(message.role)}, {"content", message.content}});
  return out;
}

nlohmann::ordered_json saved_json(const SavedInfo& s) {
  const Conversation& conversation = s.transcript.conversation;
  nlohmann::ordered_json model{
      {"name", s.model_name}, {"arch", s.model_arch},     {"hash", fmt::format("{:016x}", s.model_hash)},
      {"n_layer", s.n_layer}, {"n_head_kv", s.n_head_kv}, {"head_dim", s.head_dim}};
  add_layers(model, s.layers);
  return {{"path", s.path},
          {"format_version", s.version},
          {"spec", s.cache.spec.print()},
          {"budget", s.cache.budget ? nlohmann::ordered_json(s.cache.budget->print()) : nlohmann::ordered_json()},
          {"kv_type", s.cache.kv_type.print()},
          {"model", model},
          {"tokens", s.tokens_seen},
          {"tokens_unread", s.transcript.tokens.size() - as_size(s.tokens_seen)},
          {"prompt", name_of(conversation.format)},
          {"ends", where_it_ends(conversation)},
          {"text_bytes", conversation.text.size()},
          {"messages", messages_json(conversation.messages)},
          {"entries_per_head_mean", s.entries_per_head_mean},
          {"entries_min", s.entries_min},
          {"entries_max", s.entries_max},
          {"bytes", s.bytes},
          {"checksum", s.damage.empty() ? "holds" : "does not hold"}};
}

}  // namespace

void show_saved(const std::string& path, OutputForm form) {
  const SavedInfo s = describe_saved(path);
  const Conversation& conversation = s.transcript.conversation;
  if (form == OutputForm::json) {
    show_json(saved_json(s));
  } else {
    show(
        fmt::format("{}\n  a saved cache, format version {}: {}\n  of {} ({}, hash {:016x}): {}\n"
                    "  a text of {}, {}, {} prompt, ends {}\n"
                    "  {:.1f} of {} per head ({} to {}), {}; checksums {}\n",
                    s.path, s.version, described(s.cache), s.model_name.empty() ? "unnamed" : brief(s.model_name),
                    brief(s.model_arch), s.model_hash,
                    heads_of(s.layers, fmt::format("{}, {} of {} dimensions", counted(s.n_layer, "layer"),
                                                   counted(s.n_head_kv, "KV head"), s.head_dim)),
                    format_bytes(conversation.text.size()), counted(conversation.messages.size(), "message"),
                    name_of(conversation.format), where_it_ends(conversation), s.entries_per_head_mean,
                    counted(s.tokens_seen, "token"), s.entries_min, s.entries_max, format_bytes(s.bytes),
                    s.damage.empty() ? "hold" : "do not hold"));
  }
  if (!s.damage.empty()) throw InputError(s.damage);
}

}  // namespace winnow::cli
