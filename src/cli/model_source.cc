// SPDX-License-Identifier: Apache-2.0
#include "cli/model_source.h"

#include <spdlog/fmt/fmt.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <string_view>

#include "base/shell.h"
#include "cli/commands.h"
#include "cli/progress.h"
#include "hub/fetch.h"
#include "winnow/error.h"

namespace winnow::cli {

namespace {

constexpr const char* kVariable = "WINNOW_MODEL";
constexpr std::string_view kShort = "-hf";
constexpr std::string_view kLong = "--hf-repo";

bool is_of_environment(const std::string& file) {
  const char* const value = std::getenv(kVariable);
  return value != nullptr && file == value;
}

}  // namespace

std::string ModelSource::typed() const {
  return hub.empty() ? "-m " + shell_word(file) : fmt::format("{} {}", kShort, hub);
}

void add_model_options(CLI::App& command, ModelSource& model, const std::string& meaning) {
  command.add_option("-m,--model", model.file, meaning)->envname(kVariable);
  add_hub_options(command, model);
}

void add_hub_options(CLI::App& command, ModelSource& model) {
  command
      .add_option(std::string(kLong), model.hub,
                  fmt::format("or {}: a model of Hugging Face, downloaded to the hub's cache (without QUANT: Q4_K_M, "
                              "else Q8_0, else the first)",
                              kShort))
      ->type_name("USER/REPO[:QUANT]");
  command.add_flag("--offline", model.offline, fmt::format("with {}: use only the hub's cache, no network", kShort));
}

std::string spelled_out(const std::string& word) {
  const bool is_short = word == kShort || word.starts_with(std::string(kShort) + "=");
  return is_short ? std::string(kLong) + word.substr(kShort.size()) : word;
}

void check(const ModelSource& model) {
  if (!model.is_named())
    throw UsageError("there is no model: give -m MODEL.gguf or -hf USER/REPO, or set WINNOW_MODEL");
  if (!model.hub.empty() && !model.file.empty() && !is_of_environment(model.file))
    throw UsageError(fmt::format("both {} and {} name the model: give only one of -m and -hf", model.file, model.hub));
}

std::string path_of(const ModelSource& model) {
  if (model.hub.empty()) return model.file;
  on_interrupt(OnInterrupt::ends);  // downloaded bytes stay, and the next download resumes
  DownloadLine line;
  auto out = hub::fetch(model.hub, {model.offline, [&](const hub::Progress& progress) { line.show(progress); }});
  on_interrupt(OnInterrupt::stops_then_ends);
  return out;
}

}  // namespace winnow::cli
