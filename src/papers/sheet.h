// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "papers/recipe.h"

namespace winnow::papers {

/// Samples of one task with the same labels that a run measures in the same way.
struct Planned {
  std::string measure;
  std::string task;                           ///< as `winnow eval tasks` names it
  std::string record;                         ///< as records name it
  int max_prompt = 0;                         ///< longer prompts are cut to this number of tokens; 0: none is cut
  std::map<std::string, std::string> labels;  ///< by which the recipe selects or draws
  std::vector<std::string> ids;               ///< of the samples
};

/// A run's description in the folder of its records: a report needs nothing else.
struct Sheet {
  Recipe recipe;
  std::string model;               ///< its name
  std::string model_hash;          ///< of its records
  std::string rope;                ///< the user's RoPE options, as records name them
  int layers = 0;                  ///< of the model, without those with windows; 0: unknown (from an earlier version)
  std::vector<std::string> notes;  ///< what was left out or changed, and why
  std::vector<Planned> planned;
};

Json to_json(const Sheet& sheet);

/// The path for a sheet: FOLDER/recipes/PAPER-NAME.json, or PAPER-NAME.2.json and so on if existing sheets have other
/// samples. An existing sheet is replaced if the new one has all its samples, or if the recipe has changed. Empty if a
/// sheet of the same recipe already has all samples of this one. Throws InputError for an invalid sheet.
std::optional<std::string> sheet_path(const std::string& folder, const Sheet& sheet);

/// The sheets of a folder, in the order of their names. Throws InputError, naming the file, for a missing folder or an
/// invalid sheet.
std::vector<Sheet> sheets_in(const std::string& folder);

/// Removes sheets whose samples are all in another one: shards of a run have the same samples, and a run with a smaller
/// --limit has fewer.
std::vector<Sheet> without_parts(std::vector<Sheet> sheets);

}  // namespace winnow::papers
