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

/// The options of sampling.
struct SamplingArguments {
  CLI::Option* temperature = nullptr;
  CLI::Option* top_k = nullptr;
  CLI::Option* top_p = nullptr;
  CLI::Option* min_p = nullptr;
  CLI::Option* repeat_penalty = nullptr;
  CLI::Option* seed = nullptr;
};

/// Options as CLI11 fills them in, before they are checked: those of every command that answers.
struct CommonArguments {
  std::string kv;                       ///< empty: as CacheChoice::parse() has it
  Protocol protocol = Protocol::aware;  ///< by which `--kv auto` goes; a command sets it before check_common()
  std::string budget;
  std::string kv_type = "f16";
  std::string precision = "auto";
  std::string pack = "auto";
  std::string chat_template;  ///< a file; empty: none
  bool raw = false;
  bool special = false;
  bool ignore_eos = false;
  bool verbose = false;
  int threads = 0;
  CLI::Option* threads_given = nullptr;
  SamplingArguments sampling;
  std::vector<CLI::Option*> not_with_load;  ///< what a saved cache has settled; a command adds its own
};

/// Adds the options to a command; both structures must outlive it.
void add_common_options(CLI::App& command, CommonArguments& arguments, CommonOptions& options);

/// Adds the options of a command that only reads texts: model, control tokens, how the cache is kept, machine.
void add_reading_options(CLI::App& command, CommonArguments& arguments, CommonOptions& options);

/// Adds the options of a command that answers from caches which were read before: model, the question's form, entries'
/// type, generation, machine.
void add_asking_options(CLI::App& command, CommonArguments& arguments, CommonOptions& options);

/// Adds the options of a command whose requests bring their texts: model, control tokens, how the cache is kept,
/// generation, machine.
void add_serving_options(CLI::App& command, CommonArguments& arguments, CommonOptions& options);

/// Adds the options of a command that measures: model and machine.
void add_measuring_options(CLI::App& command, CommonArguments& arguments, CommonOptions& options);

/// Adds the options of a command that computes: machine, positions, how much is said.
void add_machine_options(CLI::App& command, CommonArguments& arguments, CommonOptions& options);

/// For a command that samples as the model's file says: its help says so. The options have usual_sampling().
void say_model_samples(const CommonArguments& arguments);

/// The options of sampling that were given.
SamplingChoice sampling_of(const CommonArguments& arguments, const CommonOptions& options);

/// Parses --kv, --budget and --kv-type. Throws UsageError.
CacheChoice choice_of(const CommonArguments& arguments);

/// Parses the arguments. With --load-kv it takes the file's cache options and returns them. Throws UsageError for wrong
/// arguments, InputError for the file. Sets the log's verbosity.
std::optional<SavedInfo> check_common(const CommonArguments& arguments, CommonOptions& options);

/// Warns that a saved conversation ends with a question, to which nobody answers where another one follows.
void warn_about_open_question(const CommonOptions& options, const SavedInfo& saved);

}  // namespace winnow::cli
