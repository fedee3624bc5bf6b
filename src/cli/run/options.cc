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
      log().warn("stdin is still open: it is read to its end as the text (-f FILE or </dev/null: it is not read)");
      told = true;
    }
    return interrupted();
  });
  std::string out = input.read_all();
  if (out.empty()) return out;
  check_text(out, input.name());
  log().info("the text is what came on stdin, {}", format_bytes(out.size()));
  return out;
}

/// Options as CLI11 sets them, before they are checked.
struct RawRun {
  RunOptions options;
  CommonArguments common;
  std::string protocol = "question-aware";
  std::string grammar;
};

void add_own_options(CLI::App& run, RawRun& r) {
  const auto settled = [&r](CLI::Option* option) { r.common.not_with_load.push_back(option); };
  run.get_option("--file")->description("text to read, - for stdin (default: what is piped to winnow run)");
  run.add_option("-p,--prompt", r.options.questions, "question about the text; several are asked of the same text");
  settled(run.add_option("--protocol", r.protocol,
                         "compress after (question-aware) or before (question-agnostic) the question is seen")
              ->check(CLI::IsMember({"question-aware", "question-agnostic"})));
  run.add_option("--dump-kept", r.options.dump_kept, "write the positions that were kept to this file");
  settled(
      run.add_option("--save-kv", r.options.save_kv,
                     "write what is kept of the text to this file, for --load-kv; with -p of the question, too, unless "
                     "--protocol question-agnostic is given"));
  run.add_option("--logprobs", r.options.generate.logprobs,
                 "with --json: log probabilities of each token and of the K best ones (default: none)")
      ->check(counts_from(0));
  settled(run.add_flag("--dry-run", r.options.dry_run, "only say how much memory and time the run would take"));
  settled(run.add_option("--jsonl", r.options.jsonl,
                         "file of many prompts: one JSON object a line with text and question"));
  run.add_option(
      "-o,--output", r.options.output,
      "with --jsonl: append answers to this file, one JSON object a line; prompts that are answered there are skipped");
  run.add_option("--parallel", r.options.parallel, "with --jsonl: prompts that are answered at a time")
      ->check(counts_from(1))
      ->capture_default_str();
  run.add_option("--grammar", r.grammar, "file with a grammar that answers follow, in llama.cpp's notation (GBNF)");
  run.add_flag("--json", r.options.json, "one JSON object on stdout");
}

/// Checks the given name. The files of several questions have numbers after it.
void check_dumping(const RunOptions& o) {
  if (o.dump_kept.empty()) return;
  if (!o.jsonl.empty()) throw UsageError("--dump-kept does not go with --jsonl: it writes what one text has kept");
  check_replaceable(o.dump_kept, kKeptFile);
}

void check_saving(const RunOptions& o) {
  if (o.save_kv.empty()) return;
  if (!o.jsonl.empty()) throw UsageError("--save-kv does not go with --jsonl: it saves one text");
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
  if (!r.grammar.empty()) o.generate.grammar = grammar_in(r.grammar);
  if (o.file.empty() && o.load_kv.empty() && o.jsonl.empty()) o.piped = piped_text();
  check_saving(o);
  check_dumping(o);
  if (o.jsonl.empty() != o.output.empty()) throw UsageError("--jsonl and -o belong together");
  const bool nothing = o.jsonl.empty() && o.load_kv.empty() && o.file.empty() && o.piped.empty() && o.questions.empty();
  if (nothing) throw UsageError("no prompt: give a text (-f, or on stdin), a question (-p) or both");
  return o;
}

}  // namespace

void add_run(CLI::App& app) {
  auto* const run = app.add_subcommand("run", "read a text, keep the entries that matter, answer questions");
  const auto raw = std::make_shared<RawRun>();
  add_common_options(*run, raw->common, raw->options);
  add_own_options(*run, *raw);
  run->footer(
      "Example:\n  winnow run -m model.gguf -f long.txt -p \"Who is the prince?\" --kv snapkv --budget 512\n"
      "A text that is read once and asked many times:\n"
      "  winnow run -m model.gguf -f long.txt --kv snapkv --budget 512 --save-kv long.kv\n"
      "  winnow run -m model.gguf --load-kv long.kv -p \"Who is the prince?\"");
  run->callback([raw] { run_command(checked_run(*raw)); });
}

}  // namespace winnow::cli
