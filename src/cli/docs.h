#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "winnow/documents.h"

namespace CLI {
class App;
}

namespace winnow::cli {

/// Each adds its command to `winnow docs`.
void add_docs_add(CLI::App& docs);
void add_docs_ask(CLI::App& docs);
void add_docs_keeping(CLI::App& docs);  ///< list, show, rm, verify, export, import, gc

/// Where documents lie.
struct StoreOptions {
  std::string store;  ///< empty: the user's data directory
};
void add_store_option(CLI::App& command, StoreOptions& options);
DocumentStore open_store(const StoreOptions& options, MissingStore missing);

/// What is known of a document, for programs.
nlohmann::ordered_json document_json(const DocumentInfo& document);
/// JSON on stdout.
void write_json(const nlohmann::ordered_json& json);

}  // namespace winnow::cli
