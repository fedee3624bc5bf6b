// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace CLI {
class App;
}

namespace winnow::cli {

/// Each adds its subcommand to the parser; the subcommand's callback does the work and throws winnow::Error.
void add_run(CLI::App& app);
void add_chat(CLI::App& app);
void add_methods(CLI::App& app);
void add_inspect(CLI::App& app);
void add_docs(CLI::App& app);
void add_bench(CLI::App& app);
void add_eval(CLI::App& app);
void add_tune(CLI::App& app);
void add_calibrate(CLI::App& app);
void add_papers(CLI::App& app);
/// Only where winnow is built with Boost.
void add_serve(CLI::App& app);

/// Adds what `winnow eval` does with records that are there.
void add_eval_reports(CLI::App& eval);

/// Effect of Ctrl-C.
enum class OnInterrupt : std::uint8_t {
  stops_then_ends,  ///< the first one stops what runs, the second ends the process
  stops,            ///< stops what runs
  ends,             ///< ends the process
};

/// Forgets an earlier Ctrl-C and says what the next one does. Until it is called: stops_then_ends.
void on_interrupt(OnInterrupt action);

/// SIGTERM does from now on what Ctrl-C does: mpirun sends it to its processes when Ctrl-C ends them.
void interrupt_on_sigterm();

/// Whether Ctrl-C has been pressed since.
bool interrupted();

}  // namespace winnow::cli
