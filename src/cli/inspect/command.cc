// SPDX-License-Identifier: Apache-2.0
#include "cli/kept/command.h"

#include <spdlog/fmt/fmt.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/file.h"
#include "cli/commands.h"
#include "cli/inspect/inspect.h"
#include "cli/output.h"
#include "documents/records.h"
#include "engine/calibration.h"
#include "winnow/error.h"
#include "winnow/saved.h"

namespace winnow::cli {

void show_json(const nlohmann::ordered_json& json) {
  write_stdout(json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

namespace {

struct InspectArguments {
  std::string path;
  bool json = false;
  KeptOptions kept;
};

/// Throws InputError for one of winnow's files that holds neither a model nor a cache, naming the command that reads
/// it.
void refuse_other(const std::string& path) {
  const std::pair<FileKind, const char*> others[] = {
      {kKeptFile, "show it with --kept"},
      {engine::kCalibrationFormat.kind(), "give it to run, chat or serve with --calibration"},
      {documents::kDocumentFormat.kind(), "add it to a store with winnow docs import"},
  };
  for (const auto& [kind, taken_by] : others) {
    if (begins_with(path, kind.beginning)) throw InputError(fmt::format("{} is {}: {}", path, kind.noun, taken_by));
  }
}

void inspect(const InspectArguments& a) {
  if (!a.kept.file.empty()) return show_kept(a.kept);
  const bool is_of_hub = !a.kept.model.hub.empty();
  if (a.path.empty() && !is_of_hub)
    throw UsageError("nothing to inspect: give a model, a saved cache, or a file of run --dump-kept with --kept");
  if (!a.path.empty() && is_of_hub)
    throw UsageError(fmt::format("give either {} or {}, not both", a.path, a.kept.model.typed()));
  const auto path = is_of_hub ? path_of(a.kept.model) : a.path;
  refuse_other(path);
  const auto form = a.json ? OutputForm::json : OutputForm::text;
  is_saved(path) ? show_saved(path, form) : show_model(path, form);
}

}  // namespace

void add_inspect(CLI::App& app) {
  auto* const command =
      app.add_subcommand("inspect", "describe a model or a saved cache, or show the entries that a run kept");
  const auto a = std::make_shared<InspectArguments>();
  auto* const path =
      command->add_option("FILE", a->path, "GGUF model, or a cache saved by run --save-kv or by a chat's /save");
  command->add_flag("--json", a->json, "as JSON");
  auto* const kept = command->add_option("--kept", a->kept.file, "show a file of run --dump-kept layer by layer");
  auto* const text =
      command->add_option("--text", a->kept.text, "with --kept: list the passages of this text that most heads keep");
  add_model_options(*command, a->kept.model, "with --text: the model that read it");
  command
      ->add_option("--system", a->kept.system,
                   "with --text: the system message with which it was read (default: the template's own)")
      ->needs(text);
  command->add_flag("--raw", a->kept.raw, "with --text: it was read without the chat template")->needs(text);
  command->add_option("-o,--output", a->kept.output, "with --kept: draw an .svg or .png instead, with gnuplot")
      ->needs(kept);
  text->needs(kept);
  kept->excludes(path);
  command->footer(
      "Models that winnow cannot run are described, too; then the reason is on stderr and the exit code is 1.\n"
      "Examples:\n  winnow inspect model.gguf\n  winnow inspect long.kv --json\n"
      "  winnow inspect --kept kept.json --text long.txt -m model.gguf");
  command->callback([a] { inspect(*a); });
}

}  // namespace winnow::cli
