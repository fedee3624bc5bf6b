// SPDX-License-Identifier: Apache-2.0
#include "cli/complete.h"

#include <spdlog/fmt/fmt.h>

#include <CLI/CLI.hpp>
#include <sstream>
#include <string_view>

#include "base/kv_type_names.h"
#include "base/printable.h"
#include "cli/help.h"
#include "cli/model_source.h"
#include "eval/tasks.h"
#include "papers/library.h"
#include "winnow/ask.h"
#include "winnow/documents.h"
#include "winnow/error.h"
#include "winnow/methods.h"
#include "winnow/recommended.h"

namespace winnow::cli {

namespace {

struct Candidate {
  std::string word;
  std::string meaning = {};
};
using Candidates = std::vector<Candidate>;

void add(const std::vector<MethodInfo>& methods, Candidates& to) {
  for (const auto& method : methods) to.push_back({method.name, method.summary});
}

Candidates methods() {
  Candidates out;
  add(describe_recommended(), out);
  add(list_methods(), out);
  add(list_wrappers(), out);
  return out;
}

Candidates ask_methods() {
  Candidates out;
  add(list_ask_methods(), out);
  return out;
}

Candidates methods_of_evaluations() {
  Candidates out = methods();
  add(list_ask_methods(), out);
  return out;
}

Candidates kv_types() {
  Candidates out;
  for (const auto name : kv_type_names()) out.push_back({std::string(name)});
  return out;
}

Candidates tasks() {
  Candidates out;
  for (const auto& task : eval::list_tasks()) out.push_back({task.name, task.source});
  return out;
}

Candidates recipes() {
  Candidates out;
  for (const auto& name : papers::recipe_names()) out.push_back({name, papers::load_recipe(name).title});
  return out;
}

/// Names in the user's default store.
Candidates stored_documents() {
  Candidates out;
  for (const auto& document : DocumentStore("", MissingStore::is_an_error).list())
    out.push_back({printable(document.name)});
  return out;
}

/// Candidates for a word.
struct Choice {
  Candidates words;
  std::string_view separators = {};  ///< characters in a word after which another candidate may follow
};

constexpr std::string_view kOfLists = ",";
constexpr std::string_view kOfMethods = ",(";  ///< a list, or the inside of a wrapper
constexpr std::string_view kOfTypes = ",/";    ///< a list, or the type of values after that of keys

/// Source of values for an option or argument. An empty command stands for all commands.
struct Known {
  std::string_view command;
  std::string_view option;
  Candidates (*values)();
  std::string_view separators = {};
};

constexpr Known kKnown[] = {
    {"eval", "--kv", methods_of_evaluations, kOfMethods},
    {"docs ask", "--method", ask_methods},
    {"", "--kv", methods, kOfMethods},
    {"", "--kv-type", kv_types, kOfTypes},
    {"", "--doc", stored_documents},
    {"methods", "NAME", methods, kOfMethods},
    {"eval", "TASK", tasks},
    {"papers show", "NAME", recipes},
    {"papers run", "NAME", recipes},
    {"docs show", "NAME", stored_documents},
    {"docs rm", "NAME", stored_documents},
    {"docs export", "NAME", stored_documents},
};

/// The words of `{a,b}`, which is how CLI11 prints the values of CLI::IsMember.
Candidates words_in_braces(const std::string& text) {
  Candidates out;
  const auto begin = text.find('{');
  const auto end = text.rfind('}');
  if (begin == std::string::npos || end == std::string::npos) return out;
  std::istringstream words(text.substr(begin + 1, end - begin - 1));
  for (std::string word; std::getline(words, word, ',');) out.push_back({word});
  return out;
}

/// The command's name with those of its parents, except `winnow`.
std::string called(const CLI::App& command) {
  const auto* const above = command.get_parent();
  if (above == nullptr) return "";
  const auto before = called(*above);
  return before.empty() ? command.get_name() : before + " " + command.get_name();
}

Choice values_of(const CLI::App& command, const CLI::Option& option) {
  for (const auto& known : kKnown) {
    const bool meant = known.command.empty() || known.command == called(command);
    if (meant && option.check_name(std::string(known.option))) return {known.values(), known.separators};
  }
  return {words_in_braces(option.get_type_name()), kOfLists};
}

Candidates option_names_of(const CLI::App& command) {
  Candidates out;
  for (const auto* const option : command.get_options()) {
    for (const auto& name : option->get_lnames()) out.push_back({"--" + name, option->get_description()});
  }
  return out;
}

/// A command line up to its last word.
class Line {
 public:
  Line(const CLI::App& app, const std::vector<std::string>& words) : command_(&app) {
    for (std::size_t i = 0; i + 1 < words.size(); ++i) take(words[i]);
  }

  Choice choice(const std::string& last) const {
    if (option_ != nullptr) return values_of(*command_, *option_);
    if (last.starts_with('-')) return {option_names_of(*command_)};
    Choice out;
    if (const auto* const positional = next_positional()) out = values_of(*command_, *positional);
    for (const auto* const below : command_->get_subcommands({}))
      if (positionals_ == 0) out.words.push_back({below->get_name(), below->get_description()});
    return out;
  }

 private:
  void take(const std::string& word) {
    if (word == "=") return;  // bash makes it a separate word
    if (option_ != nullptr) {
      option_ = nullptr;
    } else if (word.starts_with('-')) {
      const auto* const option = command_->get_option_no_throw(spelled_out(word));
      if (option != nullptr && takes_value(*option)) option_ = option;
    } else if (const auto* const below = subcommand(word); below != nullptr) {
      command_ = below;
      positionals_ = 0;
    } else {
      ++positionals_;
    }
  }

  const CLI::App* subcommand(const std::string& name) const {
    for (const auto* const below : command_->get_subcommands({}))
      if (positionals_ == 0 && below->get_name() == name) return below;
    return nullptr;
  }

  /// The next positional argument. The last one may be a list.
  const CLI::Option* next_positional() const {
    const CLI::Option* out = nullptr;
    int place = 0;
    for (const auto* const option : command_->get_options()) {
      if (!option->get_positional()) continue;
      if (place++ == positionals_ || option->get_items_expected_max() > 1) out = option;
    }
    return out;
  }

  const CLI::App* command_;
  const CLI::Option* option_ = nullptr;  ///< expects its value next
  int positionals_ = 0;
};

/// The unchanged part of a word: up to its last separator.
std::string settled(const std::string& word, std::string_view separators) {
  const auto end = word.find_last_of(separators);
  return end == std::string::npos ? "" : word.substr(0, end + 1);
}

}  // namespace

std::string completions(const CLI::App& app, const std::vector<std::string>& words) {
  const std::string last = words.empty() || words.back() == "=" ? "" : words.back();
  std::string out;
  try {
    const auto [known, separators] = Line(app, words).choice(last);
    const auto before = settled(last, separators);
    const auto begun = std::string_view(last).substr(before.size());
    for (const auto& [word, meaning] : known) {
      if (word.starts_with(begun)) out += fmt::format("{}{}{}{}\n", before, word, meaning.empty() ? "" : "\t", meaning);
    }
  } catch (const Error&) {
    return "";  // an unreadable store has no documents to offer
  }
  return out;
}

}  // namespace winnow::cli
