// SPDX-License-Identifier: Apache-2.0
#include "cli/help.h"

#include <spdlog/fmt/fmt.h>

#include <CLI/CLI.hpp>
#include <cstddef>
#include <memory>
#include <sstream>
#include <string>

namespace winnow::cli {

namespace {

/// The variable's value as a user would type it; removes the brackets that CLI11 puts around lists.
std::string default_of(const CLI::Option& option) {
  std::string out = option.get_default_str();
  if (out.starts_with('[') && out.ends_with(']')) out = out.substr(1, out.size() - 2);
  return out.empty() || out == "\"\"" ? "none" : out;
}

constexpr std::size_t kColumns = 80;

/// Breaks each line between words so that it has at most `columns` characters. Leaves indented lines, such as examples,
/// as they are.
std::string wrapped(const std::string& text, std::size_t columns) {
  std::istringstream lines(text);
  std::string out;
  for (std::string line; std::getline(lines, line);) {
    if (!out.empty()) out += '\n';
    if (line.starts_with(' ')) {
      out += line;
      continue;
    }
    std::istringstream words(line);
    std::size_t used = 0;
    for (std::string word; words >> word;) {
      const bool fits = used + 1 + word.size() <= columns;
      if (used > 0) out += fits ? ' ' : '\n';
      used = used > 0 && fits ? used + 1 + word.size() : word.size();
      out += word;
    }
  }
  return out;
}

/// Help for a terminal of 80 columns. CLI11 indents the lines of a description.
class WrappedHelp : public CLI::Formatter {
 public:
  std::string make_option_desc(const CLI::Option* option) const override {
    return wrapped(Formatter::make_option_desc(option), kColumns - column_width_);
  }
  std::string make_subcommand(const CLI::App* command) const override {
    auto description = wrapped(command->get_description(), kColumns - column_width_);
    const std::string indent(column_width_, ' ');
    for (auto end = description.find('\n'); end != std::string::npos; end = description.find('\n', end + 1))
      description.insert(end + 1, indent);
    return fmt::format("  {:<{}}{}\n", command->get_name(), column_width_ - 2, description);
  }
  std::string make_footer(const CLI::App* command) const override {
    const std::string footer = command->get_footer();
    return footer.empty() ? "" : wrapped(footer, kColumns) + "\n";
  }
};

void say_default(CLI::Option& option) {
  const std::string& description = option.get_description();
  if (takes_value(option) && !option.get_required() && description.find("default: ") == std::string::npos)
    option.description(fmt::format("{} (default: {})", description, default_of(option)));
  option.default_str("");  // CLI11 would put it before the description
}

}  // namespace

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

void begin_help(CLI::App& app) {
  app.formatter(std::make_shared<WrappedHelp>());
  app.option_defaults()->always_capture_default();
}

void say_defaults(CLI::App& app) {
  for (auto* const option : app.get_options()) say_default(*option);
  for (auto* const below : app.get_subcommands({})) say_defaults(*below);
}

}  // namespace winnow::cli
