// SPDX-License-Identifier: Apache-2.0
#include "papers/library.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <filesystem>

#include "eval/tasks/texts.h"
#include "papers/texts.h"
#include "policy/suggest.h"
#include "winnow/error.h"

namespace winnow::papers {

namespace {

/// The number at the end of a name: table-10 comes after table-9.
int number_at_end(const std::string& name) {
  const auto begin = name.find_last_not_of("0123456789");
  return begin + 1 < name.size() ? std::stoi(name.substr(begin + 1)) : 0;
}

/// The name without its number: "ems/table-9" -> "ems/table-".
std::string kind_of(const std::string& name) { return name.substr(0, name.find_last_not_of("0123456789") + 1); }

bool precedes(const std::string& a, const std::string& b) {
  const auto paper = [](const std::string& name) { return name.substr(0, name.find('/')); };
  if (paper(a) != paper(b)) return paper(a) < paper(b);
  const bool a_is_table = a.find("/table") != std::string::npos;
  const bool b_is_table = b.find("/table") != std::string::npos;
  if (a_is_table != b_is_table) return a_is_table;
  return kind_of(a) != kind_of(b) ? kind_of(a) < kind_of(b) : number_at_end(a) < number_at_end(b);
}

}  // namespace

std::string_view schema_text() { return kSchema; }

const std::vector<std::string>& recipe_names() {
  static const auto out = [] {
    std::vector<std::string> names;
    for (const auto& recipe : kRecipes) names.emplace_back(recipe.name);
    std::sort(names.begin(), names.end(), precedes);
    return names;
  }();
  return out;
}

Recipe load_recipe(const std::string& name_or_path) {
  for (const auto& recipe : kRecipes) {
    if (recipe.name == name_or_path) return parse_recipe(std::string(recipe.text), name_or_path);
  }
  if (!std::filesystem::exists(name_or_path))
    throw UsageError(
        fmt::format("there is no recipe {}, and no such file: winnow papers lists the recipes{}", name_or_path, [&] {
          const auto* const near = policy::nearest(name_or_path, recipe_names());
          return near == nullptr ? "" : fmt::format(" (did you mean {}?)", *near);
        }()));
  return parse_recipe(eval::read_file(name_or_path), name_or_path);
}

}  // namespace winnow::papers
