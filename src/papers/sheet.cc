// SPDX-License-Identifier: Apache-2.0
#include "papers/sheet.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <filesystem>

#include "base/json.h"
#include "eval/tasks/texts.h"
#include "winnow/error.h"

namespace winnow::papers {

namespace {

namespace fs = std::filesystem;

constexpr const char* kFolder = "recipes";

Json to_json(const Planned& planned) {
  return {{"measure", planned.measure},       {"task", planned.task},     {"record", planned.record},
          {"max_prompt", planned.max_prompt}, {"labels", planned.labels}, {"ids", planned.ids}};
}

Planned planned_of(const Json& json) {
  return {json.at("measure").get<std::string>(),
          json.at("task").get<std::string>(),
          json.at("record").get<std::string>(),
          json.at("max_prompt").get<int>(),
          json.at("labels").get<std::map<std::string, std::string>>(),
          json.at("ids").get<std::vector<std::string>>()};
}

Sheet sheet_of(const Json& json, const std::string& path) {
  Sheet out;
  out.recipe = parse_recipe(json.at("recipe").dump(), path);
  out.model = json.at("model").get<std::string>();
  out.model_hash = json.at("model_hash").get<std::string>();
  out.rope = json.at("rope").get<std::string>();
  out.notes = json.at("notes").get<std::vector<std::string>>();
  for (const auto& planned : json.at("planned")) out.planned.push_back(planned_of(planned));
  return out;
}

Sheet read_sheet(const std::string& path) {
  try {
    return sheet_of(parse_json<Json>(eval::read_file(path)), path);
  } catch (const nlohmann::json::exception& error) {
    throw InputError(fmt::format("{} is not what winnow papers run writes: {}", path, error.what()));
  } catch (const JsonError& error) {
    throw InputError(fmt::format("{}: {}", path, error.what()));
  }
}

}  // namespace

Json to_json(const Sheet& sheet) {
  Json planned = Json::array();
  for (const auto& one : sheet.planned) planned.push_back(to_json(one));
  return {{"recipe", sheet.recipe.json}, {"model", sheet.model}, {"model_hash", sheet.model_hash},
          {"rope", sheet.rope},          {"notes", sheet.notes}, {"planned", std::move(planned)}};
}

std::string sheet_path(const std::string& folder, const Recipe& recipe) {
  return (fs::path(folder) / kFolder / fmt::format("{}-{}.json", recipe.paper, recipe.name)).string();
}

std::vector<Sheet> sheets_in(const std::string& folder) {
  const auto recipes = fs::path(folder) / kFolder;
  if (!fs::is_directory(recipes))
    throw InputError(fmt::format("{} has no folder {}: winnow papers run makes it", folder, kFolder));
  std::vector<std::string> paths;
  for (const auto& entry : fs::directory_iterator(recipes)) {
    if (entry.path().extension() == ".json") paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<Sheet> out;
  for (const auto& path : paths) out.push_back(read_sheet(path));
  return out;
}

}  // namespace winnow::papers
