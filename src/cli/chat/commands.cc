// SPDX-License-Identifier: Apache-2.0
#include <histedit.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "base/counted.h"
#include "base/format.h"
#include "base/printable.h"
#include "cli/chat/chat.h"
#include "cli/output.h"
#include "cli/run/report.h"
#include "cli/wording.h"
#include "policy/suggest.h"
#include "winnow/error.h"
#include "winnow/recommended.h"

namespace winnow::cli {

namespace {

/// Splits a line as a shell does: quotes and backslashes keep spaces within a word. Throws UsageError for an unclosed
/// quote, and for a backslash at the end.
std::vector<std::string> words_of(std::string line) {
  std::replace(line.begin(), line.end(), '\n', ' ');
  line += '\n';  // otherwise libedit reads past a backslash at the end
  const std::unique_ptr<Tokenizer, decltype(&tok_end)> tokenizer(tok_init(nullptr), tok_end);
  int count = 0;
  const char** words = nullptr;
  switch (tok_str(tokenizer.get(), line.c_str(), &count, &words)) {
    case 0:
      return {words, words + count};
    case 1:
      throw UsageError("a quote ' is not closed: write \\' for the character itself");
    case 2:
      throw UsageError("a quote \" is not closed: write \\\" for the character itself");
    default:
      throw UsageError("a \\ at the end escapes nothing: write \\\\ for the character itself");
  }
}

using Words = std::vector<std::string>;

struct Command {
  const char* name;
  const char* arguments;
  const char* effect;
  std::size_t least_arguments;
  std::size_t most_arguments;
  AfterCommand (*run)(ChatState&, const Words& arguments);
};

const std::vector<Command>& commands();

AfterCommand help(ChatState& /*state*/, const Words& /*arguments*/) {
  std::string text;
  for (const auto& c : commands())
    text += fmt::format("{:<24} {}\n", fmt::format("{} {}", c.name, c.arguments), c.effect);
  text +=
      "Anything else is sent to the model; put a space before a / to send that, too. Ctrl-C stops an answer, Ctrl-D "
      "ends the conversation.\n";
  tell(text);
  return AfterCommand::goes_on;
}

std::string speed(const Reply& reply) {
  const auto answered = reply.generation.tokens.size();
  const auto cached = reply.cached_tokens == 0 ? "" : fmt::format(" and {} known", reply.cached_tokens);
  return fmt::format("last line: {} read{} at {:.0f} t/s, {} answered at {:.1f} t/s\n",
                     counted(reply.tokens_read, "token"), cached, per_second(reply.tokens_read, reply.read_ms),
                     answered, per_second(static_cast<double>(answered), reply.answer_ms));
}

AfterCommand stats(ChatState& state, const Words& /*arguments*/) {
  const auto stats = state.chat.stats();
  std::string text = fmt::format("{}\n", described_in_full(state.chat.cache_options()));
  if (stats) {
    text += fmt::format("{} seen, entries per head: {} min, {:.1f} mean, {} max\n{} held of {} for a full f16 cache\n",
                        counted(stats->tokens_seen, "token"), stats->entries_min, stats->entries_per_head_mean,
                        stats->entries_max, format_bytes(stats->bytes_held), format_bytes(stats->bytes_full));
  } else {
    text += fmt::format("nothing is cached: your next line also reads the {} tokens before it\n", state.chat.unread());
  }
  if (state.last) text += speed(*state.last);
  tell(text);
  return AfterCommand::goes_on;
}

AfterCommand kv(ChatState& state, const Words& arguments) {
  CacheOptions cache = state.chat.cache_options();
  if (!arguments.empty()) {
    cache.spec = endless_spec(arguments[0], state.chat.protocol());
    if (arguments.size() > 1) cache.budget = Budget::parse(arguments[1]);
    if (cache.spec == Spec()) cache.budget.reset();  // full keeps everything
    cache.check();
    state.chat.keep_by(cache);
  }
  if (arguments.empty()) {
    tell(described_in_full(cache) + "\n");
  } else if (state.chat.tokens() == 0) {
    tell(fmt::format("{} from your first line on\n", described_in_full(cache)));
  } else {
    tell(fmt::format("{}: the {} tokens so far are read again with your next line\n", described_in_full(cache),
                     state.chat.tokens()));
  }
  return AfterCommand::goes_on;
}

AfterCommand reset(ChatState& state, const Words& /*arguments*/) {
  state.chat.reset();
  state.last.reset();
  tell("the conversation is forgotten\n");
  return AfterCommand::goes_on;
}

AfterCommand save(ChatState& state, const Words& arguments) {
  const std::string& path = arguments[0];
  state.chat.save(path);
  tell(saved_line(path, std::filesystem::file_size(path), *state.chat.stats()));
  return AfterCommand::goes_on;
}

AfterCommand load(ChatState& state, const Words& arguments) {
  state.chat.load(arguments[0]);
  state.last.reset();
  tell(fmt::format("{}: {}\n", arguments[0], resumed(state.chat)));
  return AfterCommand::goes_on;
}

AfterCommand leave(ChatState& /*state*/, const Words& /*arguments*/) { return AfterCommand::ends; }

const std::vector<Command>& commands() {
  static const std::vector<Command> all{
      {"/help", "", "this list", 0, 0, help},
      {"/stats", "", "tokens, entries and bytes of the cache; speed of the last line", 0, 0, stats},
      {"/kv", "[SPEC [BUDGET]]",
       "show or change the method; after a change the whole chat is read and compressed again", 0, 2, kv},
      {"/reset", "", "forget the conversation", 0, 0, reset},
      {"/save", "FILE", "write the conversation and its cache to a file", 1, 1, save},
      {"/load", "FILE", "continue a saved conversation, or a file of run --save-kv", 1, 1, load},
      {"/exit", "", "quit, as Ctrl-D does", 0, 0, leave},
  };
  return all;
}

}  // namespace

std::vector<ChatCommandInfo> chat_commands() {
  std::vector<ChatCommandInfo> all;
  for (const auto& command : commands()) all.push_back({command.name, command.arguments, command.effect});
  return all;
}

Spec endless_spec(const std::string& text, Protocol protocol) {
  const auto which = recommended_by_name(text);
  return which ? recommended(protocol, *which) : Spec::parse_endless(text);
}

std::string resumed(const Chat& chat) {
  return fmt::format("{}, read with {}", counted(chat.stats()->tokens_seen, "token"),
                     described_in_full(chat.cache_options()));
}

AfterCommand run_chat_command(const std::string& line, ChatState& state) {
  std::istringstream in(line);
  std::string name;
  std::string rest;
  in >> name;
  std::getline(in, rest, '\0');
  std::vector<std::string> known;
  for (const auto& command : commands()) {
    known.emplace_back(command.name);
    if (name != command.name) continue;
    const Words arguments = words_of(std::move(rest));
    if (arguments.size() < command.least_arguments || arguments.size() > command.most_arguments) {
      const bool is_path = std::string_view(command.arguments) == "FILE";
      throw UsageError(fmt::format("{} takes {}, not {} words{}", name,
                                   *command.arguments == '\0' ? "nothing" : command.arguments, arguments.size(),
                                   is_path && arguments.size() > 1 ? ": put quotes around a name with spaces" : ""));
    }
    return command.run(state, arguments);
  }
  throw UsageError(fmt::format("there is no command {}: {}", brief(name), policy::suggest(name, known)));
}

}  // namespace winnow::cli
