// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace winnow::cli {

/// The model that a command line names: a file, or a model of a hub.
struct ModelSource {
  std::string file;  ///< path of a GGUF file; empty: none
  std::string hub;   ///< USER/REPO[:QUANT]; empty: none
  bool offline = false;

  bool is_named() const { return !file.empty() || !hub.empty(); }
  /// The option that names it, as typed in a shell.
  std::string typed() const;
};

/// Adds -m, -hf and --offline. `meaning` describes -m.
void add_model_options(CLI::App& command, ModelSource& model, const std::string& meaning);
/// The same without -m, for commands whose argument is a file.
void add_hub_options(CLI::App& command, ModelSource& model);

/// Spells out a word for CLI11, whose short options have one letter.
std::string spelled_out(const std::string& word);

/// Throws UsageError if no model is named, or both a file and a model of a hub. -hf overrides the variable
/// WINNOW_MODEL.
void check(const ModelSource& model);

/// Path of the model, downloaded if necessary: a terminal shows the progress, and Ctrl-C ends the process. Throws what
/// hub::fetch() throws.
std::string path_of(const ModelSource& model);

}  // namespace winnow::cli
