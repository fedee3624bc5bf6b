// SPDX-License-Identifier: Apache-2.0
#include "eval/tune.h"

#include <spdlog/fmt/fmt.h>
#include <stdlib.h>  // NOLINT: mkdtemp is POSIX

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/counted.h"
#include "base/log.h"
#include "base/shell.h"
#include "cli/arguments.h"
#include "cli/bad_lines.h"
#include "cli/cache_lists.h"
#include "cli/commands.h"
#include "cli/counts.h"
#include "cli/eval/measuring.h"
#include "cli/eval/progress.h"
#include "cli/eval/prompt_limits.h"
#include "cli/output.h"
#include "cli/run/report.h"
#include "winnow/error.h"
#include "winnow/recommended.h"

namespace winnow::cli {

namespace {

using Json = nlohmann::ordered_json;

/// The methods recommended by docs/results.md, and one of each kind that frees memory and reads the prompt once.
constexpr const char* kMethods =
    "auto,snapkv:window=8,kernel=31,pool=mean,chunk(snapkv),tova,ahakv,expected-attention,keydiff,streaming-llm";

/// Options as CLI11 sets them, before they are checked.
struct RawTune {
  CommonArguments common;
  CommonOptions options;
  CacheLists caches{{kMethods}, {"64", "128", "256", "512", "1024", "2048"}, {"f16"}};
  std::string protocol = "question-aware";
  double least = 0.98;
  std::string output;
  PromptLengths lengths;
  eval::TaskOptions task;
  BadLines bad_lines;
  bool json = false;
};

void add_tune_options(CLI::App& command, RawTune& r) {
  command
      .add_option("-f,--file", r.options.file,
                  "your prompts: on each line a JSON object with text and question (or input, or prompt)")
      ->required();
  command.add_option("--min-fidelity", r.least, "share of the full cache's greedy tokens that a method must predict")
      ->check(number(0, 1));
  add_cache_lists(command, r.caches);
  command
      .add_option("--protocol", r.protocol,
                  "compress after the question is seen (question-aware) or before (question-agnostic)")
      ->check(CLI::IsMember({"question-aware", "question-agnostic"}));
  command.add_option("--limit", r.task.limit, "number of prompts to try (default: all)")->check(counts_from(1));
  add_prompt_lengths(command, r.lengths);
  command.add_flag("--raw", r.common.raw, "use no chat template, for models that have none");
  command.add_flag("--json", r.json, "print the curve and the choice as JSON");
  command.add_option("-o,--output", r.output,
                     "folder of the records; existing records are not measured again (default: none)");
}

/// A folder that is removed with this object.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "winnow-tune-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw InputError("cannot make a temporary folder: give one with -o");
    path_ = name;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

eval::Evaluation evaluation_of(RawTune& r) {
  eval::Evaluation evaluation;
  r.task.on_bad_line = [&r](const std::string& sentence) { r.bad_lines.add(sentence); };
  evaluation.tasks = {eval::examples(r.options.file, r.task)};
  if (r.common.raw) without_template(evaluation.tasks);
  CacheLists with_full = r.caches;
  with_full.kv.emplace_back("full");  // of each type, the reference of the trials
  evaluation.protocols = {r.protocol == "question-aware" ? Protocol::aware : Protocol::agnostic};
  const auto caches = crossed(with_full, evaluation.protocols);
  evaluation.methods.assign(caches.begin(), caches.end());
  return evaluation;
}

std::string options_of(const CacheOptions& cache) {
  std::string out = "--kv " + shell_word(cache.spec.print());
  if (cache.budget) out += " --budget " + cache.budget->print();
  if (!(cache.kv_type == KvType())) out += " --kv-type " + cache.kv_type.print();
  return out;
}

std::string command_of(const RawTune& r, const CacheOptions& cache) {
  return fmt::format("winnow run {} -f TEXT -p QUESTION {}{}{}", r.options.model.typed(), options_of(cache),
                     r.protocol == "question-aware" ? "" : " --protocol " + r.protocol, r.common.raw ? " --raw" : "");
}

std::string table_of(const std::vector<eval::Trial>& trials, const std::optional<eval::Trial>& chosen) {
  std::string out = fmt::format("{:<26} {:>8} {:>9} {:>10} {:>10}  {:<19} {:>9} {:>8}\n", "method", "budget", "kv type",
                                "entries", "MiB held", "agreement, %", "KL, nats", "prompts");
  for (const auto& t : trials) {
    out += fmt::format(
        "{:<26} {:>8} {:>9} {:>10.0f} {:>10.2f}  {:<19} {:>9.4f} {:>8}{}\n", method_label(t.cache.spec.print()),
        t.cache.budget ? t.cache.budget->print() : "", t.cache.kv_type.print(), t.entries, t.bytes_held / (1 << 20),
        fmt::format("{:.1f} ({:.1f}-{:.1f})", 100 * t.agreement.value, 100 * t.agreement.low, 100 * t.agreement.high),
        t.kl, t.samples, chosen && is_same(t.cache, chosen->cache) ? "  <-" : "");
  }
  std::vector<std::string> specs;
  for (const auto& t : trials) specs.push_back(t.cache.spec.print());
  const auto notes = label_notes(specs);
  return notes.empty() ? out : out + "\n" + notes + "\n";
}

Json json_of(const eval::Trial& t) {
  return {{"spec", t.cache.spec.print()},
          {"budget", t.cache.budget ? Json(t.cache.budget->print()) : Json()},
          {"kv_type", t.cache.kv_type.print()},
          {"entries", t.entries},
          {"bytes_held", t.bytes_held},
          {"agreement", t.agreement.value},
          {"agreement_low", t.agreement.low},
          {"agreement_high", t.agreement.high},
          {"kl", t.kl},
          {"prompts", t.samples},
          {"whole", t.whole}};
}

void print(const RawTune& r, const std::vector<eval::Trial>& trials, const std::optional<eval::Trial>& chosen) {
  if (r.json) {
    Json curve = Json::array();
    for (const auto& trial : trials) curve.push_back(json_of(trial));
    const Json out{{"min_fidelity", r.least},
                   {"protocol", r.protocol},
                   {"best", chosen ? json_of(*chosen) : Json()},
                   {"command", chosen ? Json(command_of(r, chosen->cache)) : Json()},
                   {"curve", curve}};
    return write_stdout(dump(out, 2));
  }
  std::string out = table_of(trials, chosen);
  if (chosen)
    out += fmt::format("\nThe fewest bytes that keep {:.1f} % of the full cache's tokens:\n  {}\n", 100 * r.least,
                       command_of(r, chosen->cache));
  show(out);
}

/// Throws the error that says why no trial was chosen.
[[noreturn]] void fail_fidelity(const RawTune& r, const std::vector<eval::Trial>& trials) {
  const auto near = eval::most_faithful(trials);
  if (!near) throw InputError("nothing could be tried: every budget is at least as large as every prompt");
  throw InputError(
      fmt::format("no method and budget keeps {:.1f} % of the full cache's tokens: the closest is {} with {:.1f} %",
                  100 * r.least, options_of(near->cache), 100 * near->agreement.value));
}

void run_tune(RawTune& r) {
  check_common(r.common, r.options);
  eval::Evaluation evaluation = evaluation_of(r);
  const auto model = Model::load(path_of(r.options.model), r.options.loading);
  evaluation.limits = prompt_limits(r.lengths, r.options, model->info());
  std::optional<TemporaryFolder> temporary;
  if (r.output.empty()) r.output = temporary.emplace().path();
  eval::RecordFile records(r.output, fmt::format("{:016x}", model->hash()));
  Session session(model, r.options.session);
  session.on_stop(interrupted);
  const auto outcome = eval::run(session, evaluation, records, eval_progress());
  end_eval_progress();
  const auto trials = eval::trials_of(*model, evaluation, records.records());
  if (trials.empty()) throw InputError(fmt::format("none of the {} prompts could be measured", outcome.failed));
  const auto chosen = eval::cheapest(trials, r.least);
  if (outcome.failed > 0)
    log().warn("{} could not be measured and {} not count", counted(outcome.failed, "prompt"),
               outcome.failed == 1 ? "does" : "do");
  if (r.bad_lines.count() > 0)
    log().warn("{} of {} {}, and not counted{}", counted(r.bad_lines.count(), "line"), r.options.file,
               r.bad_lines.count() == 1 ? "is not a prompt" : "are not prompts", r.bad_lines.named());
  print(r, trials, chosen);
  if (!chosen) fail_fidelity(r, trials);
}

}  // namespace

void add_tune(CLI::App& app) {
  auto* const command = app.add_subcommand("tune", "find the cheapest method and budget for your own prompts");
  const auto raw = std::make_shared<RawTune>();
  add_measuring_options(*command, raw->common, raw->options);
  add_tune_options(*command, *raw);
  command->footer("Example:\n  winnow tune -m model.gguf -f examples.jsonl --min-fidelity 0.98");
  command->callback([raw] { run_tune(*raw); });
}

}  // namespace winnow::cli
