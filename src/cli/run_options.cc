#include <spdlog/fmt/fmt.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/file.h"
#include "base/log.h"
#include "cli/commands.h"
#include "cli/run.h"
#include "winnow/error.h"
#include "winnow/saved.h"

namespace winnow::cli {

namespace {

/// What CLI11 fills in before it can be checked.
struct Raw {
  RunOptions options;
  std::string kv = "full";
  std::string budget;
  std::string kv_type = "f16";
  std::string precision = "auto";
  std::string pack = "auto";
  std::string protocol = "question-aware";
  bool raw = false;
  bool special = false;
  bool ignore_eos = false;
  bool verbose = false;
  int threads = 0;
  CLI::Option* threads_given = nullptr;
  std::vector<CLI::Option*> not_with_load;  ///< what a saved cache has settled
};

void add_prompt_options(CLI::App& run, Raw& r) {
  run.add_option("-m,--model", r.options.model, "GGUF model")->envname("WINNOW_MODEL");
  const auto settles = [&r](CLI::Option* option) { r.not_with_load.push_back(option); };
  settles(run.add_option("-f,--file", r.options.file, "text to read, - for stdin"));
  run.add_option("-p,--prompt", r.options.questions, "question about the text; several are asked of the same text");
  settles(run.add_option("--protocol", r.protocol, "compress after or before the question is seen")
              ->check(CLI::IsMember({"question-aware", "question-agnostic"})));
  settles(run.add_flag("--raw", r.raw, "no chat template: the bytes of the text, then the bytes of the question"));
  run.add_flag("--special", r.special, "control tokens in the text are tokens");
  settles(run.add_option("--system", r.options.prompt.system, "system message (default: the template's own)"));
}

void add_cache_options(CLI::App& run, Raw& r) {
  for (auto* const option : {run.add_option("--kv", r.kv, "method: full, snapkv:window=16, … (see winnow methods)"),
                             run.add_option("--budget", r.budget, "what may stay: entries per KV head (512), a share (10%), bytes (64MiB)"),
                             run.add_option("--kv-type", r.kv_type, "f32, f16, bf16, q8_0 or q4_0, or KEY/VALUE")})
    r.not_with_load.push_back(option);
  run.add_option("--dump-kept", r.options.dump_kept, "write the positions that were kept to this file");
  r.not_with_load.push_back(run.add_option("--save-kv", r.options.save_kv, "write what is kept of the text to this file, for --load-kv"));
  run.add_option("--load-kv", r.options.load_kv, "go on from this file instead of reading a text");
}

void add_generation_options(CLI::App& run, Raw& r) {
  auto& g = r.options.generate;
  run.add_option("-n,--max-tokens", g.max_tokens, "longest answer, in tokens")->check(CLI::NonNegativeNumber);
  run.add_option("--seed", g.sampling.seed, "seed of the sampler");
  run.add_option("--temp", g.sampling.temperature, "temperature, 0: greedy");
  run.add_option("--top-k", g.sampling.top_k, "sample from the k most probable, 0: all");
  run.add_option("--top-p", g.sampling.top_p, "sample from the most probable that make up p");
  run.add_option("--min-p", g.sampling.min_p, "sample from those at least this share as probable as the best");
  run.add_option("--repeat-penalty", g.sampling.repeat_penalty, "divides the logits of repeated tokens, 1: off");
  run.add_option("--stop", g.stop, "text that ends the answer; may be given several times");
  run.add_flag("--ignore-eos", r.ignore_eos, "go on after the end of the answer");
  run.add_option("--logprobs", g.logprobs, "with --json: log probabilities of each token and of the K best")->check(CLI::NonNegativeNumber);
}

void add_machine_options(CLI::App& run, Raw& r) {
  r.threads_given = run.add_option("--threads", r.threads, "threads (default: all cores)");
  run.add_option("--precision", r.precision, "auto or f32")->check(CLI::IsMember({"auto", "bf16", "f32"}));
  run.add_option("--pack", r.pack, "how weights are packed for long prompts")->check(CLI::IsMember({"auto", "layer", "resident"}));
  run.add_option("--rope-freq-base", r.options.loading.rope_freq_base, "RoPE base instead of the file's");
  run.add_option("--rope-scaling", r.options.loading.rope_scaling, "none or linear:FACTOR instead of the file's");
  r.not_with_load.push_back(run.add_flag("--dry-run", r.options.dry_run, "only say what it would take"));
  r.not_with_load.push_back(run.add_option("--jsonl", r.options.jsonl, "many prompts: one JSON object a line with text and question"));
  run.add_option("-o,--output", r.options.output, "with --jsonl: one JSON result a line; what is there is not done again");
  run.add_flag("--json", r.options.json, "one JSON object on stdout");
  run.add_flag("-v,--verbose", r.verbose, "say more on stderr");
  run.add_flag("-q,--quiet", r.options.quiet, "only errors on stderr");
}

std::string described(const CacheOptions& cache) {
  return fmt::format("{}{}, {}", cache.spec.print(), cache.budget ? " @ " + cache.budget->print() : "", cache.kv_type.print());
}

/// A saved cache brings its own cache options and its prompt's form.
void take_saved(Raw& r) {
  RunOptions& o = r.options;
  const SavedInfo saved = describe_saved(o.load_kv);
  for (const auto* const option : r.not_with_load) {
    if (option->count() == 0) continue;
    throw UsageError(fmt::format("{} does not go with --load-kv {}: it holds {} tokens that were read with {}, {}", option->get_name(),
                                 o.load_kv, saved.tokens_seen, described(saved.cache),
                                 saved.form.cut == Cut::before_question ? "question-agnostic" : "question-aware"));
  }
  o.cache = saved.cache;
  o.protocol = saved.form.cut == Cut::before_question ? Protocol::agnostic : Protocol::aware;
  o.prompt.format = saved.form.format;
  o.prompt.system = saved.form.system;
}

void check_saving(const RunOptions& o) {
  if (o.save_kv.empty()) return;
  if (!o.jsonl.empty()) throw UsageError("--save-kv does not go with --jsonl: it saves one text");
  if (o.file.empty()) throw UsageError(fmt::format("--save-kv {} needs a text to save: give one with -f", o.save_kv));
  check_replaceable(o.save_kv);
}

/// Turns words into values; everything that cannot be is refused here, before a model is loaded.
RunOptions checked(Raw& r) {
  RunOptions& o = r.options;
  set_verbosity(r.verbose ? Verbosity::verbose : o.quiet ? Verbosity::quiet : Verbosity::normal);
  o.cache.spec = Spec::parse(r.kv);
  if (!r.budget.empty()) o.cache.budget = Budget::parse(r.budget);
  o.cache.kv_type = KvType::parse(r.kv_type);
  o.cache.check();
  if (o.cache.budget && o.cache.spec == Spec()) log().info("full keeps everything: the budget {} is not used", r.budget);
  if (r.threads_given->count() > 0 && r.threads < 1)
    throw UsageError(std::to_string(r.threads) + " threads cannot run anything: at least 1 is needed");
  o.session.threads = r.threads;
  if (r.precision == "bf16") throw UsageError("--precision bf16: this build computes attention in f32 only (use auto or f32)");
  if (r.precision == "f32") o.session.precision = Precision::f32;
  if (r.pack != "auto") throw UsageError("--pack " + r.pack + ": this build multiplies with ggml's packed weights only (use auto)");
  o.protocol = r.protocol == "question-aware" ? Protocol::aware : Protocol::agnostic;
  o.prompt.format = r.raw ? PromptFormat::raw : PromptFormat::chat;
  o.prompt.control = r.special ? ControlTokens::parsed : ControlTokens::as_text;
  o.generate.end = r.ignore_eos ? EndOfSequence::ignored : EndOfSequence::stops;
  if (!o.load_kv.empty()) take_saved(r);
  check_saving(o);
  if (o.model.empty()) throw UsageError("no model: give -m MODEL.gguf or set WINNOW_MODEL");
  if (o.jsonl.empty() != o.output.empty()) throw UsageError("--jsonl and -o belong together");
  const bool nothing = o.jsonl.empty() && o.load_kv.empty() && o.file.empty() && o.questions.empty();
  if (nothing) throw UsageError("no prompt: give a text (-f), a question (-p) or both");
  return o;
}

}  // namespace

void add_run(CLI::App& app) {
  auto* const run = app.add_subcommand("run", "read a text, keep what matters, answer");
  const auto raw = std::make_shared<Raw>();
  add_prompt_options(*run, *raw);
  add_cache_options(*run, *raw);
  add_generation_options(*run, *raw);
  add_machine_options(*run, *raw);
  run->footer(
      "Example:\n  winnow run -m model.gguf -f long.txt -p \"Who is the prince?\" --kv snapkv --budget 512\n"
      "A text that is read once and asked many times:\n"
      "  winnow run -m model.gguf -f long.txt --kv snapkv --budget 512 --save-kv long.kv\n"
      "  winnow run -m model.gguf --load-kv long.kv -p \"Who is the prince?\"");
  run->callback([raw] { run_command(checked(*raw)); });
}

}  // namespace winnow::cli
