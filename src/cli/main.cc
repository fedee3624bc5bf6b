// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "base/printable.h"
#include "cli/commands.h"
#include "cli/complete.h"
#include "cli/exit_codes.h"
#include "cli/help.h"
#include "cli/last_words.h"
#include "cli/model_source.h"
#include "cli/run/report.h"
#include "cli/unexpected.h"
#include "network/bf16_kernel.h"
#include "winnow/error.h"
#include "winnow/version.h"

namespace winnow::cli {

namespace {

int fail(int code, const char* what) {
  std::fprintf(stderr, "winnow: %s\n", printable(what).c_str());
  return code;
}

/// Opens stdin, stdout and stderr if they are closed. Otherwise a file that is opened later would get their numbers,
/// and output would go to it. They become /dev/null, opened in the wrong direction, so that reading and writing still
/// fail.
void fill_standard_streams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(fd, F_GETFD) != -1 || errno != EBADF) continue;
    if (open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd) _exit(kFailed);
  }
}

void set_signals() {
  on_interrupt(OnInterrupt::stops_then_ends);
  std::signal(SIGPIPE, SIG_IGN);  // writing to a closed stdout fails with an error message instead
  std::signal(SIGXFSZ, SIG_IGN);  // as does a file that exceeds the limit (ulimit -f)
}

/// The words after `winnow`, spelled out and in reverse order, as CLI11 expects them. `help COMMAND` becomes `COMMAND
/// --help`.
std::vector<std::string> command_words(int argc, char** argv) {
  std::vector<std::string> out(argv + std::min(argc, 1), argv + argc);
  if (!out.empty() && out.front() == "help") {
    out.erase(out.begin());
    out.emplace_back("--help");
  }
  std::ranges::transform(out, out.begin(), spelled_out);
  std::reverse(out.begin(), out.end());
  return out;
}

/// CLI11's error message, or a better one for a value that is not a number.
std::string sentence_of(const CLI::ParseError& error) {
  constexpr std::string_view kBegin = "Could not convert: ";
  const std::string_view what = error.what();
  if (!what.starts_with(kBegin)) return std::string(what);
  return fmt::format("{} is not a number that the option accepts", what.substr(kBegin.size()));
}

int run_command_line(int argc, char** argv) {
  CLI::App app("Runs language models on long inputs and keeps only the KV entries that matter.", "winnow");
  app.set_version_flag("--version", fmt::format("winnow {} (ggml {}, {}, {}, {})", kVersion, ggml_version_text(),
                                                network::Bf16Kernel::library(), instruction_set(), kBuildType));
  app.require_subcommand(1);
  begin_help(app);
  add_run(app);
  add_chat(app);
  add_methods(app);
  add_devices(app);
  add_inspect(app);
  add_docs(app);
  add_bench(app);
  add_eval(app);
  add_tune(app);
  add_calibrate(app);
  add_papers(app);
#ifdef WINNOW_HAS_SERVER
  add_serve(app);
#endif
  app.footer(  // added after the commands, which would inherit it
      "Examples:\n  winnow run -m model.gguf -f long.txt -p \"the question\" --kv snapkv --budget 512\n"
      "  winnow chat -hf USER/REPO:Q4_K_M\n"
      "winnow COMMAND --help and winnow help COMMAND describe a command's options.");
  say_defaults(app);
  if (argc > 1 && std::string_view(argv[1]) == kCompleteCommand) {
    std::fputs(completions(app, {argv + 2, argv + argc}).c_str(), stdout);
    return 0;
  }
  try {
    app.parse(command_words(argc, argv));
    return 0;
  } catch (const CLI::CallForHelp&) {
    if (const auto unknown = unknown_command(app); !unknown.empty()) return fail(kWrongUsage, unknown.c_str());
    std::fputs(app.help().c_str(), stdout);
    return 0;
  } catch (const CLI::CallForVersion&) {
    std::puts(app.version().c_str());
    return 0;
  } catch (const CLI::ParseError& error) {
    if (const auto called = needs_command(app); !called.empty()) {
      std::fputs(app.help().c_str(), stderr);
      return fail(kWrongUsage, (called + " needs a command").c_str());
    }
    const auto unexpected = unexpected_argument(app);
    return fail(kWrongUsage, (unexpected.empty() ? sentence_of(error) : unexpected).c_str());
  } catch (const UsageError& error) {
    return fail(kWrongUsage, error.what());
  } catch (const Interrupted&) {
    return kInterrupted;
  } catch (const std::bad_alloc&) {
    return fail(kFailed, "out of memory");
  } catch (const std::exception& error) {
    return fail(kFailed, error.what());
  }
}

}  // namespace

int run(int argc, char** argv) {
  fill_standard_streams();
  install_last_words();
  set_signals();
  return run_command_line(argc, argv);
}

}  // namespace winnow::cli

int main(int argc, char** argv) { return winnow::cli::run(argc, argv); }
