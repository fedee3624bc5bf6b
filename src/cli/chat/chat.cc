// SPDX-License-Identifier: Apache-2.0
#include "cli/chat/chat.h"

#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <cstdio>
#include <new>
#include <random>
#include <utility>

#include "base/log.h"
#include "base/printable.h"
#include "cli/chat/command_help.h"
#include "cli/chat/line_reader.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/shown_answer.h"
#include "cli/wording.h"
#include "winnow/error.h"

namespace winnow::cli {

namespace {

/// Source of the lines. After an error a person continues; a script is run to its end, and then the command fails.
enum class Audience : std::uint8_t { person, script };

/// Runs the lines of a person or a script: messages to the model, or commands.
class ChatLoop {
 public:
  ChatLoop(Session& session, const ChatOptions& options, Audience audience)
      : chat_(session, conversation_of(options), options.cache, options.generate, options.protocol),
        state_{chat_, {}},
        audience_(audience),
        thinking_(options.quiet ? ShownThinking::hidden : ShownThinking::shown),
        lines_(audience == Audience::person ? edited_lines(typing_help_) : plain_lines()) {
    if (!options.load_kv.empty()) chat_.load(options.load_kv);
  }

  void tell_loaded(const std::string& path) const { tell(fmt::format("{}: {}\n", path, resumed(chat_))); }

  void run() {
    for (auto line = next(); line; line = next()) {
      if (line->find_first_not_of(" \t") == std::string::npos) continue;
      if (take(*line) == AfterCommand::ends) break;
    }
    if (audience_ == Audience::script && failed_ > 0) {
      throw InputError(fmt::format("{} of {} lines failed", failed_, number_));
    }
  }

 private:
  std::optional<std::string> next() {
    on_interrupt(audience_ == Audience::person ? OnInterrupt::stops : OnInterrupt::ends);
    ++number_;
    auto line = lines_->next();
    if (!line) --number_;
    if (audience_ == Audience::script) on_interrupt(OnInterrupt::stops_then_ends);
    return line;  // a person's Ctrl-C in the line itself only clears it
  }

  /// Runs a line. A line that fails does not change the conversation. An error that cannot be reported, or Ctrl-C in a
  /// script, ends the conversation.
  AfterCommand take(const std::string& line) {
    try {
      if (line.front() == '/') return run_chat_command(line, state_);
      say(line);
    } catch (const Interrupted&) {
      if (audience_ == Audience::script) throw;
      fail("stopped before the answer began: the line is not part of the conversation");
    } catch (const Error& error) {
      if (std::ferror(stdout) != 0) throw;
      fail(error.what());
    } catch (const std::bad_alloc&) {
      fail("out of memory");
    }
    return AfterCommand::goes_on;
  }

  void fail(const std::string& what) {
    ++failed_;
    const std::string place = audience_ == Audience::script ? fmt::format("line {}: ", number_) : "";
    const char* const clear = isatty(STDERR_FILENO) != 0 ? "\r\033[K" : "";  // removes the progress line
    std::fprintf(stderr, "%swinnow: %s%s\n", clear, place.c_str(), printable(what).c_str());
  }

  /// Warns, once, if a turn has read what earlier ones had read.
  void warn_if_read_again(int earlier) {
    constexpr int kSome = 256;  // enough for whole blocks
    if (!chat_.reads_anew() || earlier < kSome || state_.last->cached_tokens > 0) return;
    if (std::exchange(has_warned_, true)) return;
    log().warn(
        "the {} earlier tokens of the conversation were read again, because they are not kept (--prefix-memory), or "
        "because the model or the method needs it; with --protocol question-agnostic a turn reads only its own",
        earlier);
  }

  void say(const std::string& line) {
    const int earlier = chat_.tokens();
    ShownAnswer answer(thinking_);
    try {
      state_.last = chat_.say(line, [&](const AnswerPart& part) { answer.add(part); });
    } catch (...) {
      answer.break_off();
      throw;
    }
    answer.end();
    const auto& generation = state_.last->generation;
    if (generation.finish == FinishReason::interrupted && audience_ == Audience::script)
      throw Interrupted("interrupted");
    say_if_cut(generation);
    warn_if_read_again(earlier);
    chat_.compress_turn();
  }

  Chat chat_;
  ChatState state_;
  Audience audience_;
  ShownThinking thinking_;
  CommandHelp typing_help_;
  std::unique_ptr<LineReader> lines_;
  int number_ = 0;
  int failed_ = 0;
  bool has_warned_ = false;
};

void greet(const Session& session, const CommonOptions& options) {
  const auto& model = session.model().info();
  tell(fmt::format("{}, {}. /help lists the commands, Ctrl-D ends.\n\n",
                   model.name.empty() ? model.path : brief(model.name), described_in_full(options.cache)));
}

/// Sampling options with a new seed, unless the user chose one.
SamplingOptions sampling_for(const Model& model, const SamplingChoice& chosen) {
  auto others = default_sampling(model);
  others.seed = static_cast<std::uint32_t>(std::random_device{}());
  return chosen.over(others);
}

}  // namespace

void chat_command(ChatOptions options) {
  check_stdin();
  const Audience audience = isatty(STDIN_FILENO) != 0 ? Audience::person : Audience::script;
  const auto model = Model::load(path_of(options.model), options.loading);
  options.generate.sampling = sampling_for(*model, options.sampling);
  options.session.texts = options.texts.with_free_memory();
  Session session(model, options.session);
  session.on_stop(interrupted);
  if (!options.quiet) show_progress(session);
  ChatLoop chat(session, options, audience);
  if (audience == Audience::person && !options.quiet) greet(session, options);
  if (!options.load_kv.empty() && !options.quiet) chat.tell_loaded(options.load_kv);
  chat.run();
}

}  // namespace winnow::cli
