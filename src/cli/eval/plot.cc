// SPDX-License-Identifier: Apache-2.0
#include "eval/report/plot.h"

#include <spdlog/fmt/fmt.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "base/counted.h"
#include "base/log.h"
#include "cli/commands.h"
#include "cli/eval/records.h"
#include "cli/output.h"
#include "winnow/error.h"

namespace winnow::cli {

namespace {

constexpr FileKind kPlotFile{"<svg", "a plot of winnow eval plot"};

struct RawPlot {
  std::vector<std::string> folders;
  std::string over = "bytes";
  eval::TradeoffChoice choice;
  std::string output;
};

void plot_records(const RawPlot& r) {
  if (std::filesystem::path(r.output).extension() != ".svg")
    throw UsageError(fmt::format("-o {}: give a name that ends in .svg", r.output));
  check_replaceable(r.output, kPlotFile);
  auto choice = r.choice;
  choice.cost = r.over == "time" ? eval::Cost::time : eval::Cost::bytes;
  const auto tradeoff = eval::tradeoff_of(records_of(r.folders), choice);
  if (tradeoff.left_out > 0)
    log().warn("{} left out, which some methods or budgets lack",
               counted(tradeoff.left_out, "sample is", "samples are"));
  write_file(r.output, eval::to_svg(tradeoff), kPlotFile);
}

}  // namespace

void add_eval_plot(CLI::App& eval) {
  const auto raw = std::make_shared<RawPlot>();
  auto* const command = eval.add_subcommand("plot", "draw quality over bytes or time from the records of folders");
  command->add_option("DIR", raw->folders, "folders with records")->required();
  command->add_option("--quality", raw->choice.quality, "score, or the name of a value, such as kl")
      ->capture_default_str();
  command
      ->add_option("--over", raw->over,
                   "bytes of the cache, or time of prefill in units of the full cache's (records of eval --alone)")
      ->capture_default_str()
      ->check(CLI::IsMember({"bytes", "time"}));
  command->add_option("--task", raw->choice.task, "only this task, or those that begin with it");
  command->add_option("--protocol", raw->choice.protocol, "only this protocol, if the records have several");
  command->add_option("-o,--output", raw->output, "plot.svg")->required();
  command->footer("Example:\n  winnow eval plot results --quality kl --over bytes -o plot.svg");
  command->callback([raw] { plot_records(*raw); });
}

}  // namespace winnow::cli
