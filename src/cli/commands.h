// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace CLI {
class App;
}

namespace winnow::cli {

/// Each function adds its subcommand, whose callback does the work and throws winnow::Error.
void add_run(CLI::App& app);
void add_chat(CLI::App& app);
void add_methods(CLI::App& app);
void add_devices(CLI::App& app);
void add_inspect(CLI::App& app);
void add_docs(CLI::App& app);
void add_bench(CLI::App& app);
void add_eval(CLI::App& app);
void add_tune(CLI::App& app);
void add_calibrate(CLI::App& app);
void add_papers(CLI::App& app);
/// Only if winnow is built with Boost.
void add_serve(CLI::App& app);

/// Adds the subcommands of `winnow eval` that use existing records.
void add_eval_reports(CLI::App& eval);
void add_eval_plot(CLI::App& eval);

/// Effect of Ctrl-C.
enum class OnInterrupt : std::uint8_t {
  stops_then_ends,  ///< the first one stops the running work, the second ends the process
  stops,            ///< stops the running work
  ends,             ///< ends the process
};

/// Sets the effect of the next Ctrl-C and forgets earlier ones. Initially stops_then_ends.
void on_interrupt(OnInterrupt action);

/// Gives SIGTERM the effect of Ctrl-C: after Ctrl-C, mpirun sends SIGTERM to its processes.
void interrupt_on_sigterm();

/// True if Ctrl-C has been pressed since on_interrupt().
bool interrupted();

}  // namespace winnow::cli
