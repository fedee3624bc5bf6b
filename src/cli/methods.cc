#include "winnow/methods.h"

#include <spdlog/fmt/fmt.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/output.h"
#include "winnow/error.h"
#include "winnow/spec.h"

namespace winnow::cli {

namespace {

using Json = nlohmann::ordered_json;

Json to_json(const MethodInfo& m) {
  Json parts = Json::object();
  for (const auto& part : m.parts) parts[part.place] = part.text;
  Json options = Json::array();
  for (const auto& o : m.options) options.push_back({{"name", o.name}, {"default", o.value}, {"range", o.range}, {"effect", o.effect}});
  return {{"name", m.name}, {"summary", m.summary}, {"paper", m.paper}, {"parts", parts}, {"options", options}};
}

std::string describe(const MethodInfo& m) {
  std::string out = fmt::format("{}: {}\n  {}\n\n", m.name, m.summary, m.paper);
  for (const auto& part : m.parts) out += fmt::format("  {:<20} {}\n", part.place, part.text);
  if (!m.options.empty()) out += "\n  options\n";
  for (const auto& o : m.options) out += fmt::format("  {:<20} {} (default {}; {})\n", o.name, o.effect, o.value, o.range);
  return out;
}

void show(const std::string& name, bool json) {
  const auto all = list_methods();
  if (name.empty()) {
    Json list = Json::array();
    std::string table;
    for (const auto& m : all) {
      list.push_back(to_json(m));
      table += fmt::format("{:<16} {}\n", m.name, m.summary);
    }
    return write_stdout(json ? list.dump(2) + "\n" : table);
  }
  const std::string wanted = Spec::parse(name).print();  // an unknown name is an error with the nearest one
  for (const auto& m : all) {
    if (m.name == wanted) return write_stdout(json ? to_json(m).dump(2) + "\n" : describe(m));
  }
  throw UsageError(fmt::format("'{}' is a composition: winnow methods takes a single name", name));
}

}  // namespace

void add_methods(CLI::App& app) {
  auto* const command = app.add_subcommand("methods", "list the methods, or one with its parts and options");
  const auto name = std::make_shared<std::string>();
  const auto json = std::make_shared<bool>(false);
  command->add_option("NAME", *name, "method");
  command->add_flag("--json", *json, "as JSON");
  command->footer("Example:\n  winnow methods snapkv");
  command->callback([name, json] { show(*name, *json); });
}

}  // namespace winnow::cli
