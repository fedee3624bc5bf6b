// SPDX-License-Identifier: Apache-2.0
#include "winnow/methods.h"

#include <spdlog/fmt/fmt.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/output.h"
#include "winnow/recommended.h"

namespace winnow::cli {

namespace {

using Json = nlohmann::ordered_json;

enum class Form : std::uint8_t { text, json };

Json to_json(const MethodInfo& m) {
  Json parts = Json::object();
  for (const auto& part : m.parts) parts[part.place] = part.text;
  Json options = Json::array();
  for (const auto& o : m.options)
    options.push_back({{"name", o.name}, {"default", o.value}, {"range", o.range}, {"effect", o.effect}});
  return {{"name", m.name}, {"summary", m.summary}, {"paper", m.paper}, {"parts", parts}, {"options", options}};
}

std::string describe(const MethodInfo& m) {
  std::string out = fmt::format("{}: {}\n", m.name, m.summary);
  if (!m.paper.empty()) out += fmt::format("  {}\n", m.paper);
  out += "\n";
  for (const auto& part : m.parts) out += fmt::format("  {:<20} {}\n", part.place, part.text);
  if (!m.options.empty()) out += "\n  options\n";
  for (const auto& o : m.options)
    out += fmt::format("  {:<20} {} (default {}; {})\n", o.name, o.effect, o.value, o.range);
  return out;
}

MethodInfo recommended_methods() {
  return {std::string(kAuto),
          "the recommended method",
          "",
          {{"question-aware", recommended(Protocol::aware).print()},
           {"question-agnostic", recommended(Protocol::agnostic).print()}},
          {}};
}

void show_all(const std::vector<MethodInfo>& all, Form form) {
  Json list = Json::array();
  std::size_t width = 0;
  for (const auto& m : all) width = std::max(width, m.name.size());
  std::string table;
  for (const auto& m : all) {
    list.push_back(to_json(m));
    table += fmt::format("{:<{}}  {}\n", m.name, width, m.summary);
  }
  write_stdout(form == Form::json ? list.dump(2) + "\n" : table);
}

/// Presets and wrappers of this name, or the parts of any other spec.
void show(const std::string& name, Form form) {
  auto all = list_methods();
  all.insert(all.begin(), recommended_methods());
  const auto wrappers = list_wrappers();
  all.insert(all.end(), wrappers.begin(), wrappers.end());
  if (name.empty()) return show_all(all, form);
  std::erase_if(all, [&](const auto& m) { return m.name != name; });
  if (all.empty()) all.push_back(describe_method(name));
  if (form == Form::json) return write_stdout(to_json(all.front()).dump(2) + "\n");
  std::string text;
  for (const auto& info : all) text += (text.empty() ? "" : "\n") + describe(info);
  write_stdout(text);
}

}  // namespace

void add_methods(CLI::App& app) {
  auto* const command =
      app.add_subcommand("methods", "list the methods and wrappers, or show one, or the parts of any spec");
  const auto name = std::make_shared<std::string>();
  const auto json = std::make_shared<bool>(false);
  command->add_option("NAME", *name, "method, wrapper or spec");
  command->add_flag("--json", *json, "as JSON");
  command->footer("Example:\n  winnow methods snapkv\n  winnow methods 'pyramid(ada(h2o))'");
  command->callback([name, json] { show(*name, *json ? Form::json : Form::text); });
}

}  // namespace winnow::cli
