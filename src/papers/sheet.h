// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "papers/recipe.h"

namespace winnow::papers {

/// Samples of one task that a run measures in the same way, and which have the same labels.
struct Planned {
  std::string measure;
  std::string task;                           ///< as `winnow eval tasks` names it
  std::string record;                         ///< as records name it
  int max_prompt = 0;                         ///< tokens to which longer prompts are cut; 0: none is cut
  std::map<std::string, std::string> labels;  ///< those that the recipe selects or draws by
  std::vector<std::string> ids;               ///< of the samples
};

/// What a run leaves in the folder of its records, so that a report needs nothing else.
struct Sheet {
  Recipe recipe;
  std::string model;               ///< its name
  std::string model_hash;          ///< of its records
  std::string rope;                ///< the user's RoPE options, as records name them
  int layers = 0;                  ///< of the model, without those with windows; 0: runs of before did not say
  std::vector<std::string> notes;  ///< what was left out or changed, and why
  std::vector<Planned> planned;
};

Json to_json(const Sheet& sheet);

/// Where a sheet is written: FOLDER/recipes/PAPER-NAME.json, or PAPER-NAME.2.json and so on while what is there is of
/// other samples. What is there is replaced if all its samples are in the new sheet, or if the recipe has changed
/// since. Nothing where a sheet of the same recipe already has all samples of this one. Throws InputError for what is
/// no sheet.
std::optional<std::string> sheet_path(const std::string& folder, const Sheet& sheet);

/// The sheets of a folder, in the order of their names. Throws InputError, with the file: no such folder, what is no
/// sheet.
std::vector<Sheet> sheets_in(const std::string& folder);

/// The sheets without those whose samples another one has, too: shards of a run have the same, and a run with a smaller
/// --limit has fewer.
std::vector<Sheet> without_parts(std::vector<Sheet> sheets);

}  // namespace winnow::papers
