// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/arguments.h"
#include "cli/chat/chat.h"
#include "cli/commands.h"
#include "winnow/error.h"

namespace winnow::cli {

namespace {

/// Options as CLI11 sets them, before they are checked.
struct RawChat {
  ChatOptions options;
  CommonArguments common;
  std::string protocol = "question-aware";
  TextArguments texts;
};

const ChatOptions& checked_chat(RawChat& r) {
  r.common.protocol = r.options.protocol = r.protocol == "question-aware" ? Protocol::aware : Protocol::agnostic;
  const auto saved = check_common(r.common, r.options);
  if (saved) warn_about_open_question(r.options, *saved);
  if (!saved && !r.common.kv.empty()) r.options.cache.spec = endless_spec(r.common.kv, r.options.protocol);
  r.options.texts = texts_of(r.texts);
  r.options.sampling = sampling_of(r.common, r.options);
  if (r.options.file == "-") throw UsageError("-f - is not possible: stdin has the lines of the conversation");
  return r.options;
}

}  // namespace

void add_chat(CLI::App& app) {
  auto* const chat = app.add_subcommand("chat", "chat with a model, about a text if one is given");
  const auto raw = std::make_shared<RawChat>();
  raw->options.generate.sampling = usual_sampling();
  add_common_options(*chat, raw->common, raw->options);
  say_model_samples(raw->common);
  chat->add_option("--protocol", raw->protocol,
                   "choose from the whole conversation when a question is seen (question-aware), or compress each turn "
                   "by itself at its end (question-agnostic)")
      ->check(CLI::IsMember({"question-aware", "question-agnostic"}));
  add_text_options(*chat, raw->texts,
                   "memory that keeps texts, so that each turn reads only what is new: 512MiB (default: a quarter of "
                   "the free memory; 0: none)");
  chat->footer(
      "Lines are read from stdin; on a terminal they are edited and remembered, and /help lists the commands.\n"
      "A method that evicts at every step gets positions=cache unless the spec says otherwise, so a conversation can "
      "be endless. A method that evicts once chooses from the whole conversation at each turn.\n"
      "Examples:\n  winnow chat -m model.gguf -f long.txt --kv h2o --budget 1024\n  winnow chat -m model.gguf "
      "--load-kv long.kv");
  chat->callback([raw] { chat_command(checked_chat(*raw)); });
}

}  // namespace winnow::cli
