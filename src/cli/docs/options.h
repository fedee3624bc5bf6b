// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "winnow/documents.h"

namespace CLI {
class App;
}

namespace winnow::cli {

/// The location of the documents.
struct StoreOptions {
  std::string store;  ///< empty: the user's data directory
};
void add_store_option(CLI::App& command, StoreOptions& options);
DocumentStore open_store(const StoreOptions& options, MissingStore missing);

/// Documents chosen from a store.
struct DocumentChoice {
  std::vector<std::string> names;
  std::vector<std::string> tags;
  bool all = false;

  /// Throws UsageError if none is chosen.
  void check() const;
  /// The named documents in the order given, then, by name, those with the tags, or all. Throws InputError if there is
  /// none.
  std::vector<std::string> names_in(const DocumentStore& store) const;
};
void add_choice_options(CLI::App& command, DocumentChoice& choice);

}  // namespace winnow::cli
