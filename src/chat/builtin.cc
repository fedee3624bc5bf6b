// SPDX-License-Identifier: Apache-2.0
#include "chat/builtin.h"

#include <llama.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "chat/placement.h"

namespace winnow::chat {

namespace {

using Roles = std::vector<const char*>;

/// Whether libllama's templates end with the beginning of an answer.
enum class End : std::uint8_t { open, closed };

std::string mark(std::size_t i) { return fmt::format("@{}@", i); }

/// Output of libllama for messages with marks as contents; empty: it rejects them.
std::string written(const std::string& name, const Roles& roles, End end, std::string_view around = "") {
  std::vector<std::string> contents;
  for (std::size_t i = 0; i < roles.size(); ++i) contents.push_back(fmt::format("{}{}{}", around, mark(i), around));
  std::vector<llama_chat_message> messages;
  for (std::size_t i = 0; i < roles.size(); ++i) messages.push_back({roles[i], contents[i].c_str()});
  std::string out(4096, '\0');
  const auto size = llama_chat_apply_template(name.c_str(), messages.data(), messages.size(), end == End::open,
                                              out.data(), static_cast<std::int32_t>(out.size()));
  if (size < 0 || static_cast<std::size_t>(size) > out.size()) return {};
  out.resize(static_cast<std::size_t>(size));
  return out;
}

/// The text between two marks; `count` stands for the beginning or the end of the text.
std::string between(const std::string& text, std::size_t first, std::size_t last, std::size_t count) {
  const auto begin = first == count ? 0 : text.find(mark(first));
  const auto end = last == count ? text.size() : text.find(mark(last));
  if (begin == std::string::npos || end == std::string::npos) return "\n\n";  // libllama omits one of them
  const auto from = first == count ? begin : begin + mark(first).size();
  return from <= end ? text.substr(from, end - from) : "\n\n";
}

std::string in_quotes(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
    } else {
      if (c == '\'' || c == '\\') out += '\\';
      out += c;
    }
  }
  return out + "'";
}

/// Texts between messages, by the roles around them.
class Joints {
 public:
  explicit Joints(std::string name) : name_(std::move(name)) {
    const auto learn = [this](const Roles& roles) {
      const auto text = written(name_, roles, End::closed);
      const auto n = roles.size();
      add(std::string("-") + roles[0], between(text, n, 0, n));
      for (std::size_t i = 0; i + 1 < n; ++i)
        add(fmt::format("{}-{}", roles[i], roles[i + 1]), between(text, i, i + 1, n));
      add(fmt::format("{}-", roles[n - 1]), between(text, n - 1, n, n));
      add(fmt::format("{}-answer", roles[n - 1]), between(written(name_, roles, End::open), n - 1, n, n));
    };
    learn({"user", "assistant", "user"});
    learn({"system", "user", "assistant"});
    learn({"user", "user"});
    learn({"assistant", "assistant"});
    learn({"user", "system"});
    learn({"user", "assistant", "system"});
    learn({"system", "system"});
    learn({"system", "assistant"});
  }

  std::string dictionary() const {
    std::string out;
    for (const auto& [key, text] : texts_)
      out += fmt::format("{}{}: {}", out.empty() ? "" : ", ", in_quotes(key), in_quotes(text));
    return "{" + out + "}";
  }

 private:
  void add(const std::string& key, const std::string& text) { texts_.emplace(key, text); }

  std::string name_;
  std::map<std::string, std::string> texts_;
};

/// The built-in template whose control tokens are in a vocabulary.
std::string nearest(const std::function<bool(const std::string&)>& has_token) {
  constexpr std::array<std::pair<const char*, const char*>, 9> kTokens{{
      {"<|im_start|>", "chatml"},
      {"<|start_header_id|>", "llama3"},
      {"<start_of_turn>", "gemma"},
      {"<|header_start|>", "llama4"},
      {"[SYSTEM_PROMPT]", "mistral-v7"},
      {"[INST]", "mistral-v3"},
      {"<|start_of_role|>", "granite"},
      {"<|START_OF_TURN_TOKEN|>", "command-r"},
      {"<|assistant|>", "phi3"},
  }};
  const auto found = std::ranges::find_if(kTokens, [&](const auto& entry) { return has_token(entry.first); });
  return found == kTokens.end() ? "chatml" : found->second;
}

/// Renders a question to find faulty templates when the file is opened, not with each request.
Template tried(const std::string& name, const TemplateSources& sources, const std::string& bos,
               const std::string& eos) {
  Template out(name, sources, bos, eos);
  const std::array<Message, 1> question{{{Role::user, "Who?"}}};
  Input input;
  input.messages = question;
  try {
    static_cast<void>(out.render(input));
  } catch (const LeftOut&) {
    throw TemplateError(name + ": the chat template leaves out the user's message");
  }
  return out;
}

}  // namespace

std::string builtin_source(const std::string& name) {
  std::vector<const char*> names(static_cast<std::size_t>(llama_chat_builtin_templates(nullptr, 0)));
  llama_chat_builtin_templates(names.data(), names.size());
  if (std::ranges::find(names, name) == names.end()) return {};
  const bool keeps_space = written(name, {"user"}, End::closed, " ").find(" @0@ ") != std::string::npos;
  const char* content = keeps_space ? "message.content" : "message.content | trim";
  return fmt::format(R"({{%- set joints = {} -%}}
{{%- set state = namespace(role='') -%}}
{{%- for message in messages -%}}
{{%- set role = 'user' if message.role == 'tool' else message.role -%}}
{{{{- joints[state.role ~ '-' ~ role] ~ ({}) -}}}}
{{%- set state.role = role -%}}
{{%- endfor -%}}
{{{{- joints[state.role ~ ('-answer' if add_generation_prompt else '-')] -}}}}
)",
                     Joints(name).dictionary(), content);
}

Opened open_template(const std::string& name, const TemplateSources& sources, const std::string& bos,
                     const std::string& eos, const std::function<bool(const std::string&)>& has_token) {
  if (sources.usual.empty() && !sources.tool_use.empty())
    return open_template(name, {sources.tool_use}, bos, eos, has_token);
  const auto builtin = builtin_source(sources.usual);
  std::string reason = name + ": there is no chat template";
  if (!sources.usual.empty()) {
    try {
      return {tried(name, {builtin.empty() ? sources.usual : builtin, sources.tool_use}, bos, eos), {}};
    } catch (const TemplateError& error) {
      reason = error.what();
    }
  }
  if (!sources.tool_use.empty()) {
    auto without = open_template(name, {sources.usual}, bos, eos, has_token);
    if (without.notice.empty()) without.notice = reason + "; requests with tools use the template for tools";
    return without;
  }
  const auto other = nearest(has_token);
  return {Template(name, {builtin_source(other)}, bos, eos),
          fmt::format("{}; messages are rendered with the built-in template {}", reason, other)};
}

}  // namespace winnow::chat
