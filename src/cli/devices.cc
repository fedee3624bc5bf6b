// SPDX-License-Identifier: Apache-2.0
#include "winnow/devices.h"

#include <spdlog/fmt/fmt.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "cli/commands.h"
#include "cli/output.h"

namespace winnow::cli {

namespace {

std::string line_of(const DeviceInfo& d) {
  return fmt::format("{:<10} {}, {} of {} free\n", d.name, d.description, format_bytes(d.free_bytes),
                     format_bytes(d.total_bytes));
}

std::string devices_text() {
  std::string out;
  for (const auto& device : devices()) out += line_of(device);
  return out.empty() ? "no GPU that ggml can use\n" : out;
}

std::string devices_json() {
  auto out = nlohmann::ordered_json::array();
  for (const auto& d : devices())
    out.push_back({{"name", d.name}, {"description", d.description}, {"free", d.free_bytes}, {"total", d.total_bytes}});
  return out.dump(2) + "\n";
}

}  // namespace

void add_devices(CLI::App& app) {
  auto* const command = app.add_subcommand("devices", "list the GPUs that --device can name");
  const auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "print a list in JSON; bytes");
  command->callback([json] { write_stdout(*json ? devices_json() : devices_text()); });
}

}  // namespace winnow::cli
