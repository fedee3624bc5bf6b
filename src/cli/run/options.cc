// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/file.h"
#include "base/format.h"
#include "base/log.h"
#include "base/text_input.h"
#include "base/text_kind.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/counts.h"
#include "cli/output.h"
#include "cli/run/run.h"
#include "engine/saved.h"
#include "winnow/error.h"

namespace winnow::cli {

namespace {

constexpr double kPatienceMs = 2000;

bool may_have_text() {
  struct stat info {};
  return fstat(STDIN_FILENO, &info) == 0 && (S_ISREG(info.st_mode) || S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode));
}

/// The text of stdin if it is a pipe, a socket or a file; "" if that is empty, or stdin is a terminal or device. Waits
/// for the end, and reports a long wait, since a pipe may have been left open by mistake. Throws what read_text()
/// throws.
std::string piped_text() {
  if (!may_have_text()) return {};
  const auto begin = Clock::now();
  bool told = false;
  TextInput input("-", [&] {
    if (!told && ms_since(begin) > kPatienceMs) {
      log().warn("still waiting for the text on stdin (use -f FILE or </dev/null if there is none)");
      told = true;
    }
    return interrupted();
  });
  std::string out = input.read_all();
  if (out.empty()) return out;
  check_text(out, input.name());
  log().info("the text is from stdin, {}", format_bytes(out.size()));
  return out;
}

/// Options as CLI11 sets them, before they are checked.
struct RawRun {
  RunOptions options;
  CommonArguments common;
  std::string protocol = "question-aware";
  std::string grammar;
  TextArguments texts;
};

void add_own_options(CLI::App& run, RawRun& r) {
  const auto settled = [&r](CLI::Option* option) { r.common.not_with_load.push_back(option); };
  run.get_option("--file")->description("text to read, - for stdin (default: stdin if it is piped)");
  run.add_option("-p,--prompt", r.options.questions, "question about the text; several are asked about the same text");
  settled(run.add_option("--protocol", r.protocol,
                         "compress after (question-aware) or before (question-agnostic) the question is seen")
              ->check(CLI::IsMember({"question-aware", "question-agnostic"})));
  run.add_option("--dump-kept", r.options.dump_kept, "write the kept positions to this file");
  settled(run.add_option("--save-kv", r.options.save_kv,
                         "write the cache of the text to this file, for --load-kv; with -p it includes the question, "
                         "unless --protocol question-agnostic is given"));
  run.add_option("--logprobs", r.options.generate.logprobs,
                 "with --json: log probabilities of each token and of the K best ones (default: none)")
      ->check(counts_from(0));
  settled(run.add_flag("--dry-run", r.options.dry_run, "only report how much memory and time the run would take"));
  settled(run.add_option("--jsonl", r.options.jsonl,
                         "file of many prompts: on each line a JSON object with text and question"));
  run.add_option("-o,--output", r.options.output,
                 "with --jsonl: append answers to this file, one JSON object per line; prompts that it already answers "
                 "are skipped");
  run.add_option("--parallel", r.options.parallel, "with --jsonl: number of prompts that are answered at a time")
      ->check(counts_from(1))
      ->capture_default_str();
  add_text_options(run, r.texts,
                   "with --jsonl or --texts: memory that keeps texts, so that later prompts read only what differs: "
                   "512MiB (default: a quarter of the free memory; 0: none)");
  run.add_option("--grammar", r.grammar, "file with a grammar for the answers, in llama.cpp's notation (GBNF)");
  run.add_flag("--json", r.options.json, "one JSON object on stdout");
}

/// Checks the given name. The files of several questions have numbers after it.
void check_dumping(const RunOptions& o) {
  if (o.dump_kept.empty()) return;
  if (!o.jsonl.empty())
    throw UsageError("--dump-kept cannot be combined with --jsonl: it writes the positions of one text");
  check_replaceable(o.dump_kept, kKeptFile);
}

void check_saving(const RunOptions& o) {
  if (o.save_kv.empty()) return;
  if (!o.jsonl.empty()) throw UsageError("--save-kv cannot be combined with --jsonl: it saves one text");
  if (o.file.empty() && o.piped.empty())
    throw UsageError(fmt::format("--save-kv {} needs a text to save: give one with -f", o.save_kv));
  check_replaceable(o.save_kv, engine::kSavedFormat.kind());
}

std::string grammar_in(const std::string& path) {
  std::string out = read_file(path);
  if (out.empty()) throw InputError(fmt::format("{} is empty: --grammar needs a rule 'root'", path));
  return out;
}

/// Parses and checks all options before a model is loaded.
RunOptions checked_run(RawRun& r) {
  RunOptions& o = r.options;
  r.common.protocol = r.protocol == "question-aware" ? Protocol::aware : Protocol::agnostic;
  const auto saved = check_common(r.common, o);
  o.protocol = r.common.protocol;
  if (saved) o.protocol = saved->transcript.conversation.last() == nullptr ? Protocol::agnostic : Protocol::aware;
  if (saved && !o.questions.empty()) warn_about_open_question(o, *saved);
  o.texts = texts_of(r.texts);
  if (!r.grammar.empty()) o.generate.grammar = grammar_in(r.grammar);
  if (o.file.empty() && o.load_kv.empty() && o.jsonl.empty()) o.piped = piped_text();
  check_saving(o);
  check_dumping(o);
  if (o.jsonl.empty() != o.output.empty()) throw UsageError("--jsonl and -o need each other: give both");
  const bool nothing = o.jsonl.empty() && o.load_kv.empty() && o.file.empty() && o.piped.empty() && o.questions.empty();
  if (nothing) throw UsageError("there is no prompt: give a text (-f, or on stdin), a question (-p) or both");
  return o;
}

}  // namespace

void add_run(CLI::App& app) {
  auto* const run = app.add_subcommand("run", "read a text, keep the entries that matter, and answer questions");
  const auto raw = std::make_shared<RawRun>();
  add_common_options(*run, raw->common, raw->options);
  add_own_options(*run, *raw);
  run->footer(
      "Example:\n  winnow run -m model.gguf -f long.txt -p \"Who is the prince?\" --kv snapkv --budget 512\n"
      "To read a text once and ask about it many times:\n"
      "  winnow run -m model.gguf -f long.txt --kv snapkv --budget 512 --save-kv long.kv\n"
      "  winnow run -m model.gguf --load-kv long.kv -p \"Who is the prince?\"");
  run->callback([raw] { run_command(checked_run(*raw)); });
}

}  // namespace winnow::cli
