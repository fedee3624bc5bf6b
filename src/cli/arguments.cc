// SPDX-License-Identifier: Apache-2.0
#include "cli/arguments.h"

#include <spdlog/fmt/fmt.h>

#include <CLI/CLI.hpp>

#include "base/cores.h"
#include "base/counted.h"
#include "base/log.h"
#include "cli/counts.h"
#include "cli/output.h"
#include "cli/wording.h"
#include "winnow/devices.h"
#include "winnow/error.h"

namespace winnow::cli {

namespace {

void add_model_option(CLI::App& command, CommonOptions& o) { add_model_options(command, o.model, "GGUF model"); }

CLI::Option* add_special_option(CLI::App& command, CommonArguments& a) {
  return command.add_flag("--special", a.special, "read the names of control tokens in the text as control tokens");
}

void add_prompt_options(CLI::App& command, CommonArguments& a, CommonOptions& o) {
  for (auto* const option :
       {command.add_option("-f,--file", o.file, "text to read"),
        command.add_flag("--raw", a.raw, "use no chat template: read just the text, then the question"),
        add_special_option(command, a),
        command.add_option("--system", o.prompt.system, "system message (default: the template's own)")})
    a.not_with_load.push_back(option);
}

CLI::Option* add_kv_type_option(CLI::App& command, CommonArguments& a) {
  return command.add_option("--kv-type", a.kv_type,
                            "type of kept entries: f32, f16, bf16, q8_0 or q4_0, or two of them as KEY/VALUE (default: "
                            "f16; with a budget in bytes: q8_0)");
}

void add_cache_options(CLI::App& command, CommonArguments& a) {
  for (auto* const option :
       {command.add_option(
            "--kv", a.kv,
            "method and its options, such as auto or snapkv:window=16; winnow methods lists them (default: full; "
            "with --budget: auto)"),
        command.add_option("--budget", a.budget,
                           "how much may be kept: entries per KV head (512), a share (10%) or bytes (64MiB)"),
        add_kv_type_option(command, a)})
    a.not_with_load.push_back(option);
}

void add_load_option(CLI::App& command, CommonOptions& o) {
  command.add_option("--load-kv", o.load_kv,
                     "continue from a file of run --save-kv or of a chat's /save instead of reading a text");
}

void add_generation_options(CLI::App& command, CommonArguments& a, CommonOptions& o) {
  auto& g = o.generate;
  command.add_option("-n,--max-tokens", g.max_tokens, "most tokens of an answer")->check(counts_from(0));
  auto& s = a.sampling;
  s.seed = command.add_option("--seed", g.sampling.seed, "seed of the sampler");
  s.temperature = command.add_option("--temp", g.sampling.temperature, "temperature; 0: greedy");
  s.top_k = command.add_option("--top-k", g.sampling.top_k, "sample from the k most probable tokens; 0: from all");
  s.top_p = command.add_option("--top-p", g.sampling.top_p,
                               "sample from the most probable tokens whose probabilities add up to p");
  s.min_p = command.add_option("--min-p", g.sampling.min_p,
                               "sample from tokens with at least this share of the best one's probability");
  s.repeat_penalty =
      command.add_option("--repeat-penalty", g.sampling.repeat_penalty,
                         "divide the logits of tokens that are in the prompt or the answer by this; 1: off");
  command.add_option("--stop", g.stop, "text that ends the answer; may be given several times");
  command.add_flag("--ignore-eos", a.ignore_eos, "do not stop at the end-of-sequence token");
}

void add_calibration_option(CLI::App& command, CommonOptions& o) {
  command.add_option("--calibration", o.session.calibration,
                     "file of winnow calibrate for this model, which some methods need");
}

/// True if an option only repeats what the saved conversation has.
bool says_the_same(const CLI::Option& option, const Conversation& conversation) {
  return option.check_name("--raw") && conversation.format == PromptFormat::raw;
}

/// Loads a saved cache's information, with its cache options and prompt format.
SavedInfo take_saved(const CommonArguments& a, CommonOptions& o) {
  SavedInfo saved = describe_saved(o.load_kv);
  const Conversation& conversation = saved.transcript.conversation;
  for (const auto* const option : a.not_with_load) {
    if (option->count() == 0 || says_the_same(*option, conversation)) continue;
    throw UsageError(fmt::format("{} cannot be combined with --load-kv {}, whose {} tokens were read with {}, {}, {}",
                                 option->get_name(), o.load_kv, saved.tokens_seen, described(saved.cache),
                                 name_of(conversation.format), where_it_ends(conversation)));
  }
  o.cache = saved.cache;
  o.prompt.format = conversation.format;
  o.prompt.control = conversation.control;
  return saved;
}

void take_given(const CommonArguments& a, CommonOptions& o) {
  o.cache = choice_of(a).with(a.protocol);
  if (o.cache.budget && o.cache.spec == Spec())
    log().info("full keeps every entry, so the budget {} is not used", a.budget);
  o.prompt.format = a.raw ? PromptFormat::raw : PromptFormat::chat;
  o.prompt.control = a.special ? ControlTokens::parsed : ControlTokens::as_text;
}

void check_machine(const CommonArguments& a, CommonOptions& o) {
  if (a.threads_given->count() > 0 && a.threads < 1)
    throw UsageError(fmt::format("cannot run on {} threads: give at least 1", a.threads));
  if (a.threads > usable_cores())
    log().warn("{} threads share {}: {} would be faster", a.threads, counted(usable_cores(), "core"), usable_cores());
  if (!a.chat_template.empty()) o.loading.chat_template = read_text(a.chat_template);
  o.session.threads = a.threads;
  if (a.precision == "bf16") o.session.precision = Precision::bf16;
  if (a.precision == "f32") o.session.precision = Precision::f32;
  if (a.pack == "layer") o.session.pack = Pack::layer;
  if (a.pack == "resident") o.session.pack = Pack::resident;
  if (a.rows == "alike") o.session.rows = StepRows::alike;
  o.session.check();
  o.loading.device = open_device(a.device);
}

}  // namespace

void add_machine_options(CLI::App& command, CommonArguments& a, CommonOptions& o) {
  a.threads_given =
      command.add_option("--threads", a.threads, "number of threads (default: all cores that may be used)");
  command
      .add_option("--precision", a.precision,
                  "compute type for prompts: auto (bf16 if the machine has instructions for it), bf16 or f32")
      ->check(CLI::IsMember({"auto", "bf16", "f32"}));
  command
      .add_option("--pack", a.pack,
                  "bf16 weights for long prompts: one layer at a time if that is faster (auto) or always (layer), or "
                  "all in memory (resident)")
      ->check(CLI::IsMember({"auto", "layer", "resident"}));
  command.add_option("--device", a.device,
                     "where the network is computed: cpu, auto (a GPU if there is one), or a GPU by ggml's backend or "
                     "by its name in winnow devices; attention is computed there with cuda only; this has "
                     "never run on a GPU");
  command
      .add_option("--rows", a.rows,
                  "with --device: sequences pass through a decode step together, or each alone (alike), so that no "
                  "answer depends on the rounding of others")
      ->check(CLI::IsMember({"together", "alike"}));
  command.add_option("--rope-freq-base", o.loading.rope_freq_base, "RoPE base (default: the file's)");
  command.add_option(
      "--rope-scaling", o.loading.rope_scaling,
      "none, linear:FACTOR, yarn:FACTOR[:TRAINED_CONTEXT], longrope:short or longrope:long (default: the file's)");
  command.add_option("--chat-template", a.chat_template,
                     "file with a chat template in Jinja (default: the template of the model's file)");
  command.add_flag("-v,--verbose", a.verbose, "more messages on stderr");
  command.add_flag("-q,--quiet", o.quiet, "only errors on stderr");
}

void add_common_options(CLI::App& command, CommonArguments& arguments, CommonOptions& options) {
  add_model_option(command, options);
  add_prompt_options(command, arguments, options);
  add_cache_options(command, arguments);
  add_calibration_option(command, options);
  add_load_option(command, options);
  add_generation_options(command, arguments, options);
  add_machine_options(command, arguments, options);
}

void add_reading_options(CLI::App& command, CommonArguments& arguments, CommonOptions& options) {
  add_model_option(command, options);
  add_special_option(command, arguments);
  add_cache_options(command, arguments);
  add_calibration_option(command, options);
  add_machine_options(command, arguments, options);
}

void add_asking_options(CLI::App& command, CommonArguments& arguments, CommonOptions& options) {
  add_model_option(command, options);
  command.add_flag("--raw", arguments.raw, "use no chat template: read just the documents, then the question");
  add_special_option(command, arguments);
  add_kv_type_option(command, arguments);
  add_generation_options(command, arguments, options);
  add_machine_options(command, arguments, options);
}

void add_serving_options(CLI::App& command, CommonArguments& arguments, CommonOptions& options) {
  add_model_option(command, options);
  add_special_option(command, arguments);
  add_cache_options(command, arguments);
  add_calibration_option(command, options);
  add_generation_options(command, arguments, options);
  add_machine_options(command, arguments, options);
}

void add_measuring_options(CLI::App& command, CommonArguments& arguments, CommonOptions& options) {
  add_model_option(command, options);
  add_calibration_option(command, options);
  add_machine_options(command, arguments, options);
}

void say_model_samples(const CommonArguments& arguments) {
  const auto& s = arguments.sampling;
  for (auto* const option : {s.temperature, s.top_k, s.top_p, s.min_p, s.repeat_penalty})
    option->description(
        fmt::format("{} (default: the model's file, or {})", option->get_description(), option->get_default_str()));
  s.seed->description("seed of the sampler (default: random)");
}

SamplingChoice sampling_of(const CommonArguments& arguments, const CommonOptions& options) {
  const auto& values = options.generate.sampling;
  const auto chosen = [](const CLI::Option* option, auto value) {
    return option->count() > 0 ? std::optional(value) : std::nullopt;
  };
  const auto& s = arguments.sampling;
  return {chosen(s.temperature, values.temperature),
          chosen(s.top_k, values.top_k),
          chosen(s.top_p, values.top_p),
          chosen(s.min_p, values.min_p),
          chosen(s.repeat_penalty, values.repeat_penalty),
          chosen(s.seed, values.seed)};
}

Conversation conversation_of(const CommonOptions& options) {
  Conversation out = before_question(options.prompt);
  out.text = options.file.empty() ? options.piped : read_text(options.file);
  return out;
}

CacheChoice choice_of(const CommonArguments& a) {
  const auto budget = a.budget.empty() ? std::nullopt : std::optional(Budget::parse(a.budget));
  const auto kv = a.kv.empty() ? std::nullopt : std::optional<std::string_view>(a.kv);
  const auto type = a.kv_type.empty() ? std::nullopt : std::optional<std::string_view>(a.kv_type);
  return CacheChoice::parse(kv, budget, type);
}

std::optional<SavedInfo> check_common(const CommonArguments& a, CommonOptions& o) {
  set_verbosity(a.verbose ? Verbosity::verbose : o.quiet ? Verbosity::quiet : Verbosity::normal);
  check_machine(a, o);
  o.generate.end = a.ignore_eos ? EndOfSequence::ignored : EndOfSequence::stops;
  o.generate.check();
  std::optional<SavedInfo> saved;
  if (o.load_kv.empty()) {
    take_given(a, o);
  } else {
    saved = take_saved(a, o);
  }
  check(o.model);
  return saved;
}

void warn_about_open_question(const CommonOptions& options, const SavedInfo& saved) {
  if (!saved.transcript.conversation.awaits_answer()) return;
  log().warn(
      "{} ends with an unanswered question, and yours follows it: to save the text alone, use run --save-kv without -p "
      "or with --protocol question-agnostic",
      options.load_kv);
}

}  // namespace winnow::cli
