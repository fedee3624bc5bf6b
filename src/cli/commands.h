#pragma once

namespace CLI {
class App;
}

namespace winnow::cli {

/// Each adds its subcommand to the parser; the subcommand's callback does the work and throws winnow::Error.
void add_run(CLI::App& app);
void add_methods(CLI::App& app);
void add_inspect(CLI::App& app);

/// Set by Ctrl-C. The first one stops what runs; the second ends the process.
bool interrupted();

}  // namespace winnow::cli
