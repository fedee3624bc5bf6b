// SPDX-License-Identifier: Apache-2.0
#include "cli/chat/command_help.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "cli/chat/chat.h"
#include "winnow/methods.h"
#include "winnow/recommended.h"

namespace winnow::cli {

namespace {

/// A line that is being typed: `/kv`, followed by `snap`.
struct Typed {
  std::string_view name;
  std::string_view rest;
  bool has_space = false;  ///< the command's name is complete
};

Typed typed(std::string_view line) {
  const auto space = line.find(' ');
  if (space == std::string_view::npos) return {line, {}, false};
  const auto rest = line.find_first_not_of(' ', space);
  return {line.substr(0, space), rest == std::string_view::npos ? std::string_view() : line.substr(rest), true};
}

bool is_command(std::string_view line) { return line.starts_with('/'); }

/// The commands whose names begin with the typed text, or the one with this name if it is complete.
std::vector<ChatCommandInfo> meant(const Typed& typed) {
  auto all = chat_commands();
  std::erase_if(
      all, [&](const auto& c) { return typed.has_space ? c.name != typed.name : !c.name.starts_with(typed.name); });
  return all;
}

std::vector<std::string> method_names() {
  std::vector<std::string> names;
  for (const auto& methods : {describe_recommended(), list_methods()}) {
    for (const auto& method : methods) names.push_back(method.name);
  }
  return names;
}

}  // namespace

std::vector<std::string> CommandHelp::completions(std::string_view line) const {
  if (!is_command(line)) return {};
  const Typed now = typed(line);
  std::vector<std::string> words;
  if (!now.has_space) {
    for (const auto& command : meant(now)) words.push_back(command.name);
  } else if (now.name == "/kv" && now.rest.find(' ') == std::string_view::npos) {
    words = method_names();
    std::erase_if(words, [&](const auto& word) { return !word.starts_with(now.rest); });
  }
  return words;
}

bool CommandHelp::is_path(std::string_view line) const {
  const auto commands = meant(typed(line));
  return is_command(line) && typed(line).has_space && !commands.empty() && commands[0].arguments == "FILE";
}

std::string CommandHelp::hint(std::string_view line) const {
  if (!is_command(line)) return {};
  const auto commands = meant(typed(line));
  if (commands.empty()) return "no such command; put a space before the / to send it as text";
  if (commands.size() > 1) {
    std::vector<std::string> names;
    for (const auto& command : commands) names.push_back(command.name);
    return fmt::format("{}", fmt::join(names, " "));
  }
  const auto& command = commands[0];
  const std::string arguments = command.arguments.empty() ? "" : command.arguments + ": ";
  return arguments + command.effect;
}

}  // namespace winnow::cli
