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

Json method_json(const MethodInfo& m) {
  Json parts = Json::object();
  for (const auto& part : m.parts) parts[part.place] = part.text;
  Json options = Json::array();
  for (const auto& o : m.options)
    options.push_back({{"name", o.name}, {"default", o.value}, {"range", o.range}, {"effect", o.effect}});
  return {{"name", m.name}, {"summary", m.summary}, {"paper", m.paper}, {"parts", parts}, {"options", options}};
}

/// The name, with (X) for a wrapper. A wrapper has no parts of its own: they are those of its inner method.
std::string title_of(const MethodInfo& m) { return m.parts.empty() ? m.name + "(X)" : m.name; }

std::string describe(const MethodInfo& m) {
  std::string out = fmt::format("{}: {}\n", title_of(m), m.summary);
  if (!m.paper.empty()) out += fmt::format("  {}\n", m.paper);
  if (!m.parts.empty()) out += "\n";
  for (const auto& part : m.parts) out += fmt::format("  {:<20} {}\n", part.place, part.text);
  if (!m.options.empty()) out += "\n  options\n";
  for (const auto& o : m.options)
    out += fmt::format("  {:<20} {} (default {}; {})\n", o.name, o.effect, o.value, o.range);
  return out;
}

std::string list_of(const std::vector<MethodInfo>& methods) {
  std::size_t width = 0;
  for (const auto& m : methods) width = std::max(width, title_of(m).size());
  std::string out;
  for (const auto& m : methods) out += fmt::format("{:<{}}  {}\n", title_of(m), width, m.summary);
  return out;
}

std::string descriptions_of(const std::vector<MethodInfo>& methods) {
  std::string out;
  for (const auto& m : methods) out += (out.empty() ? "" : "\n") + describe(m);
  return out;
}

std::string methods_json(const std::vector<MethodInfo>& methods) {
  Json out = Json::array();
  for (const auto& m : methods) out.push_back(method_json(m));
  return out.dump(2) + "\n";
}

/// Shows all methods; or presets and wrappers with this name (quest and kvzip are both); or the parts of any other
/// spec.
void show_methods(const std::string& name, Form form) {
  auto methods = describe_recommended();
  for (const auto& more : {list_methods(), list_wrappers()}) methods.insert(methods.end(), more.begin(), more.end());
  if (!name.empty()) std::erase_if(methods, [&](const auto& m) { return m.name != name; });
  if (methods.empty()) methods.push_back(describe_method(name));
  if (form == Form::json) return write_stdout(methods_json(methods));
  write_stdout(name.empty() ? list_of(methods) : descriptions_of(methods));
}

}  // namespace

void add_methods(CLI::App& app) {
  auto* const command = app.add_subcommand("methods", "list the methods and wrappers, or describe one or any spec");
  const auto name = std::make_shared<std::string>();
  const auto json = std::make_shared<bool>(false);
  command->add_option("NAME", *name, "method, wrapper or spec");
  command->add_flag("--json", *json, "print a list in JSON");
  command->footer("Example:\n  winnow methods snapkv\n  winnow methods 'pyramid(ada(h2o))'");
  command->callback([name, json] { show_methods(*name, *json ? Form::json : Form::text); });
}

}  // namespace winnow::cli
