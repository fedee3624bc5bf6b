// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "winnow/documents.h"

namespace CLI {
class App;
}

namespace winnow::cli {

/// Where documents lie.
struct StoreOptions {
  std::string store;  ///< empty: the user's data directory
};
void add_store_option(CLI::App& command, StoreOptions& options);
DocumentStore open_store(const StoreOptions& options, MissingStore missing);

/// Which documents of a store are meant.
struct DocumentChoice {
  std::vector<std::string> names;
  std::vector<std::string> tags;
  bool all = false;

  /// Throws UsageError when none is.
  void check() const;
  /// The documents that were named, in that order, then those of the tags, or all, by name. Throws InputError when
  /// there is none.
  std::vector<std::string> names_in(const DocumentStore& store) const;
};
void add_choice_options(CLI::App& command, DocumentChoice& choice);

}  // namespace winnow::cli
