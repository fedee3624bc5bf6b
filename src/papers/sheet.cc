// SPDX-License-Identifier: Apache-2.0
#include "papers/sheet.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <tuple>

#include "base/json.h"
#include "eval/tasks/texts.h"
#include "winnow/error.h"

namespace winnow::papers {

namespace {

namespace fs = std::filesystem;

constexpr const char* kFolder = "recipes";

Json cell_json(const Planned& planned) {
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
  out.layers = json.value("layers", 0);
  out.notes = json.at("notes").get<std::vector<std::string>>();
  for (const auto& planned : json.at("planned")) out.planned.push_back(planned_of(planned));
  return out;
}

Sheet read_sheet(const std::string& path) {
  try {
    return sheet_of(parse_json<Json>(eval::read_file(path)), path);
  } catch (const nlohmann::json::exception& error) {
    throw InputError(fmt::format("{} is not a file of winnow papers run: {}", path, reason_of(error)));
  } catch (const JsonError& error) {
    throw InputError(fmt::format("{}: {}", path, error.what()));
  }
}

/// How one sample is measured.
using Measured = std::tuple<std::string, std::string, std::string, int, std::string>;

std::set<Measured> samples_of(const Sheet& sheet) {
  std::set<Measured> out;
  for (const auto& planned : sheet.planned) {
    for (const auto& id : planned.ids)
      out.emplace(planned.measure, planned.task, planned.record, planned.max_prompt, id);
  }
  return out;
}

bool are_alike(const Sheet& a, const Sheet& b) {
  return a.recipe.id() == b.recipe.id() && a.model_hash == b.model_hash && a.rope == b.rope;
}

bool has_all(const Sheet& whole, const Sheet& part) {
  return std::ranges::includes(samples_of(whole), samples_of(part));
}

}  // namespace

Json to_json(const Sheet& sheet) {
  Json planned = Json::array();
  for (const auto& one : sheet.planned) planned.push_back(cell_json(one));
  return {{"recipe", sheet.recipe.json}, {"model", sheet.model}, {"model_hash", sheet.model_hash}, {"rope", sheet.rope},
          {"layers", sheet.layers},      {"notes", sheet.notes}, {"planned", std::move(planned)}};
}

std::optional<std::string> sheet_path(const std::string& folder, const Sheet& sheet) {
  const auto name = fmt::format("{}-{}", sheet.recipe.paper, sheet.recipe.name);
  for (int number = 1;; ++number) {
    const auto file = number == 1 ? name + ".json" : fmt::format("{}.{}.json", name, number);
    const auto path = (fs::path(folder) / kFolder / file).string();
    if (!fs::exists(path)) return path;
    const auto there = read_sheet(path);
    if (!are_alike(there, sheet)) continue;
    if (there.recipe.json != sheet.recipe.json || has_all(sheet, there)) return path;
    if (has_all(there, sheet)) return {};
  }
}

std::vector<Sheet> sheets_in(const std::string& folder) {
  const auto recipes = fs::path(folder) / kFolder;
  if (!fs::is_directory(recipes))
    throw InputError(fmt::format("{} has no folder {}: winnow papers run makes it", folder, kFolder));
  std::vector<std::string> paths;
  for (const auto& entry : fs::directory_iterator(recipes)) {
    if (entry.path().extension() == ".json") paths.push_back(entry.path().string());
  }
  std::ranges::sort(paths, {}, [](const std::string& path) { return fs::path(path).stem(); });
  std::vector<Sheet> out;
  for (const auto& path : paths) out.push_back(read_sheet(path));
  return out;
}

std::vector<Sheet> without_parts(std::vector<Sheet> sheets) {
  std::vector<Sheet> out;
  for (auto& sheet : sheets) {
    const bool is_part =
        std::ranges::any_of(out, [&](const Sheet& other) { return are_alike(other, sheet) && has_all(other, sheet); });
    if (is_part) continue;
    std::erase_if(out, [&](const Sheet& other) { return are_alike(other, sheet) && has_all(sheet, other); });
    out.push_back(std::move(sheet));
  }
  return out;
}

}  // namespace winnow::papers
