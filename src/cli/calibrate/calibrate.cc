// SPDX-License-Identifier: Apache-2.0
// `winnow calibrate`: computes the facts about a model that some methods need, from the user's text.
#include <spdlog/fmt/fmt.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <numeric>

#include "base/clock.h"
#include "base/counted.h"
#include "base/format.h"
#include "base/log.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/counts.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "winnow/calibration.h"
#include "winnow/error.h"

namespace winnow::cli {

namespace {

/// With fewer tokens, a few hundred numbers depend on the choice of the text.
constexpr int kFew = 10000;

struct CalibrateArguments {
  CommonArguments common;
  CommonOptions options;
  CalibrateOptions calibrate;
  std::string output;
};

std::string told_model(const Calibrated& c, const std::string& path, double seconds) {
  const double sum = std::accumulate(c.explained.begin(), c.explained.end(), 0.0);
  return fmt::format(
      "{}: {}, from {} in {}, {:.0f} s; a layer's input explains {:.0f} % of the variance of its (log) scores, mean "
      "over {}\n",
      path, format_bytes(std::filesystem::file_size(path)), counted(c.tokens, "token"), counted(c.passages, "passage"),
      seconds, 100 * sum / static_cast<double>(c.explained.size()), counted(c.explained.size(), "layer"));
}

/// With -hf, the first argument is the text.
void take_arguments(CalibrateArguments& a) {
  auto& o = a.options;
  if (!o.model.hub.empty() && o.file.empty()) o.file.swap(o.model.file);
  if (o.file.empty()) throw UsageError("calibrate needs a text: give TEXT, or - for stdin");
}

void run_calibrate(CalibrateArguments& a) {
  take_arguments(a);
  check_common(a.common, a.options);
  a.calibrate.check();
  a.calibrate.format = a.options.prompt.format;
  check_calibration_path(a.output);
  const std::string text = read_text(a.options.file);
  const auto begin = Clock::now();
  const auto model = Model::load(path_of(a.options.model), a.options.loading);
  Session session(model, a.options.session);
  session.on_stop(interrupted);
  if (!a.options.quiet) show_progress(session, "reading the text");
  const Calibrated calibrated = calibrate(session, text, a.output, a.calibrate);
  if (calibrated.tokens < kFew)
    log().warn("the text has only {} tokens: a calibration is better with {} or more", calibrated.tokens, kFew);
  if (!a.options.quiet) tell(told_model(calibrated, a.output, ms_since(begin) / 1000));
}

}  // namespace

void add_calibrate(CLI::App& app) {
  auto* const command =
      app.add_subcommand("calibrate", "make the calibration file that some methods, such as kvzap, need from a text");
  const auto a = std::make_shared<CalibrateArguments>();
  command->add_option("MODEL", a->options.model.file, "GGUF model; not given with -hf");
  command->add_option("TEXT", a->options.file, "text like those that the model will read; - for stdin");
  add_hub_options(*command, a->options.model);
  command->add_option("-o,--output", a->output, "the file to write, for --calibration")->required();
  command->add_option("--tokens", a->calibrate.tokens, "tokens to read, in passages spread over the text")
      ->check(counts_from(1))
      ->capture_default_str();
  command->add_flag("--raw", a->common.raw, "make it for prompts without the chat template");
  add_machine_options(*command, a->common, a->options);
  command->footer(
      "The file can only be used with the same model and RoPE options.\n"
      "Example:\n  winnow calibrate model.gguf own.txt -o model.cal\n"
      "  winnow run -m model.gguf -f long.txt -p \"Who is it?\" --kv kvzap --budget 10% --calibration model.cal");
  command->callback([a] { run_calibrate(*a); });
}

}  // namespace winnow::cli
