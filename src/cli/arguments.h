// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/options.h"
#include "winnow/recommended.h"
#include "winnow/sampling.h"
#include "winnow/saved.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace winnow::cli {

/// Sampling options.
struct SamplingArguments {
  CLI::Option* temperature = nullptr;
  CLI::Option* top_k = nullptr;
  CLI::Option* top_p = nullptr;
  CLI::Option* min_p = nullptr;
  CLI::Option* repeat_penalty = nullptr;
  CLI::Option* seed = nullptr;
};

/// Options of every command that answers, as CLI11 sets them, before they are checked.
struct CommonArguments {
  std::string kv;                       ///< empty: see CacheChoice::parse()
  Protocol protocol = Protocol::aware;  ///< for which `--kv auto` chooses; a command sets it before check_common()
  std::string budget;
  std::string kv_type;  ///< empty: see CacheChoice::parse()
  std::string precision = "auto";
  std::string pack = "auto";
  std::string rows = "together";
  std::string device = "cpu";
  std::string chat_template;  ///< a file; empty: none
  bool raw = false;
  bool special = false;
  bool ignore_eos = false;
  bool verbose = false;
  int threads = 0;
  CLI::Option* threads_given = nullptr;
  SamplingArguments sampling;
  std::vector<CLI::Option*> not_with_load;  ///< options that a saved cache determines; a command adds its own
};

/// Adds the options to a command; both structures must outlive it.
void add_common_options(CLI::App& command, CommonArguments& arguments, CommonOptions& options);

/// Adds the options of a command that only reads texts: model, control tokens, cache, machine.
void add_reading_options(CLI::App& command, CommonArguments& arguments, CommonOptions& options);

/// Adds the options of a command that answers from existing caches: model, prompt format, KV type, generation, machine.
void add_asking_options(CLI::App& command, CommonArguments& arguments, CommonOptions& options);

/// Adds the options of a command whose requests contain the texts: model, control tokens, cache, generation, machine.
void add_serving_options(CLI::App& command, CommonArguments& arguments, CommonOptions& options);

/// Adds the options of a command that measures: model and machine.
void add_measuring_options(CLI::App& command, CommonArguments& arguments, CommonOptions& options);

/// Adds the options of a command that computes: machine, positions, verbosity.
void add_machine_options(CLI::App& command, CommonArguments& arguments, CommonOptions& options);

/// Changes the help of a command that samples by the model file's defaults. The options have usual_sampling().
void say_model_samples(const CommonArguments& arguments);

/// The sampling options that the user gave.
SamplingChoice sampling_of(const CommonArguments& arguments, const CommonOptions& options);

/// Parses --kv, --budget and --kv-type. Throws UsageError.
CacheChoice choice_of(const CommonArguments& arguments);

/// Parses the arguments. With --load-kv, uses and returns the file's options. Throws UsageError for wrong arguments,
/// InputError for the file. Sets the log's verbosity.
std::optional<SavedInfo> check_common(const CommonArguments& arguments, CommonOptions& options);

/// Warns if a saved conversation ends with a question that stays unanswered because another one follows.
void warn_about_open_question(const CommonOptions& options, const SavedInfo& saved);

}  // namespace winnow::cli
