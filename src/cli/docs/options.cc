// SPDX-License-Identifier: Apache-2.0
#include "cli/docs/options.h"

#include <spdlog/fmt/fmt.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "winnow/error.h"

namespace winnow::cli {

void add_store_option(CLI::App& command, StoreOptions& options) {
  command
      .add_option(
          "--store", options.store,
          "folder, or redis[s]://[[USER][:PASSWORD]@]HOST[:PORT][/DATABASE] (default: the user's data directory)")
      ->envname("WINNOW_STORE");
}

DocumentStore open_store(const StoreOptions& options, MissingStore missing) {
  return DocumentStore(options.store, missing);
}

void DocumentChoice::check() const {
  if (!all && names.empty() && tags.empty()) throw UsageError("no documents: give --doc NAME, --tag TAG or --all");
}

std::vector<std::string> DocumentChoice::names_in(const DocumentStore& store) const {
  std::vector<std::string> out = names;
  if (!all && tags.empty()) return out;
  for (const auto& document : store.list()) {
    const bool tagged = std::any_of(tags.begin(), tags.end(),
                                    [&](const auto& tag) { return std::ranges::count(document.tags, tag) > 0; });
    const bool named = std::ranges::count(names, document.name) > 0;
    if ((all || tagged) && !named) out.push_back(document.name);
  }
  if (out.empty()) throw InputError(fmt::format("no document in {} was selected: see winnow docs list", store.where()));
  return out;
}

void add_choice_options(CLI::App& command, DocumentChoice& choice) {
  command.add_option("--doc", choice.names, "a document; may be given several times, and the order counts")
      ->allow_extra_args(true);
  command.add_option("--tag", choice.tags, "all documents with this tag")->allow_extra_args(false);
  command.add_flag("--all", choice.all, "all documents");
}

}  // namespace winnow::cli
