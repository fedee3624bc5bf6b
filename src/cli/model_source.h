// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace winnow::cli {

/// The model that a command line names: a file, or one of a hub.
struct ModelSource {
  std::string file;  ///< path of a GGUF file; empty: none
  std::string hub;   ///< USER/REPO[:QUANT]; empty: none
  bool offline = false;

  bool is_named() const { return !file.empty() || !hub.empty(); }
  /// The option that names it, as it is typed in a shell.
  std::string typed() const;
};

/// Adds -m, -hf and --offline. `meaning` describes -m.
void add_model_options(CLI::App& command, ModelSource& model, const std::string& meaning);
/// The same without -m, for commands that take a file as an argument.
void add_hub_options(CLI::App& command, ModelSource& model);

/// A word of the command line as CLI11 knows it, whose short options have one letter.
std::string spelled_out(const std::string& word);

/// Throws UsageError where no model is named, or a file and one of a hub. The variable WINNOW_MODEL gives way to -hf.
void check(const ModelSource& model);

/// Path of the model, which is downloaded if need be: on a terminal a line shows how far that is, and Ctrl-C ends the
/// process. Throws what hub::fetch() throws.
std::string path_of(const ModelSource& model);

}  // namespace winnow::cli
