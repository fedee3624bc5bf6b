// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "winnow/documents.h"

namespace CLI {
class App;
}

namespace winnow::cli {

/// Each adds its command to `winnow docs`.
void add_docs_add(CLI::App& docs);
void add_docs_ask(CLI::App& docs);
void add_docs_calibrate(CLI::App& docs);
void add_docs_keeping(CLI::App& docs);  ///< list, show, rm, verify, export, import, gc

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
  /// Those that were named, in that order, then those of the tags, or all, by name. Throws InputError when there is
  /// none.
  std::vector<std::string> names_in(const DocumentStore& store) const;
};
void add_choice_options(CLI::App& command, DocumentChoice& choice);

/// What is known of a document, for programs.
nlohmann::ordered_json document_json(const DocumentInfo& document);
/// JSON on stdout.
void write_json(const nlohmann::ordered_json& json);

}  // namespace winnow::cli
