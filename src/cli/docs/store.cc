// SPDX-License-Identifier: Apache-2.0
// `winnow docs list | show | rm | verify | export | import | gc`: manages a store.
#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/counted.h"
#include "base/format.h"
#include "base/printable.h"
#include "cli/docs/docs.h"
#include "cli/docs/json.h"
#include "cli/docs/options.h"
#include "cli/output.h"
#include "cli/sizes.h"
#include "cli/wording.h"
#include "documents/document_json.h"
#include "winnow/error.h"

namespace winnow::cli {

namespace {

struct StoreArguments : StoreOptions {
  std::vector<std::string> names;
  std::string file;
  std::string as;
  std::string tag;
  std::string max_bytes;
  bool json = false;
};

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const auto& word : words) out += (out.empty() ? "" : ", ") + printable(word);
  return out;
}

void list_documents(const StoreArguments& a) {
  const auto store = open_store(a, MissingStore::is_an_error);
  auto documents = store.list();
  std::erase_if(documents, [&](const DocumentInfo& d) {
    return !a.tag.empty() && std::find(d.tags.begin(), d.tags.end(), a.tag) == d.tags.end();
  });
  if (a.json) {
    auto all = nlohmann::ordered_json::array();
    for (const auto& document : documents) all.push_back(documents::document_json(document));
    return write_json({{"store", store.where()}, {"documents", std::move(all)}});
  }
  std::size_t widest = 0;
  for (const auto& document : documents) widest = std::max(widest, printable(document.name).size());
  std::string out;
  for (const auto& d : documents) {
    out += fmt::format("{:<{}}  {:>7} tokens  {:>10}  {}{}\n", printable(d.name), widest, d.tokens,
                       format_bytes(d.bytes), described(d.cache), d.tags.empty() ? "" : "  [" + joined(d.tags) + "]");
  }
  show(out);
}

void show_document(const StoreArguments& a) {
  const auto store = open_store(a, MissingStore::is_an_error);
  const DocumentInfo d = store.info(a.names.front());
  if (a.json) return write_json(documents::document_json(d));
  show(
      fmt::format("{}\n  {}, {}, {} in {}\n  read by {} ({}, hash {:016x}), {}\n  content {}\n  added "
                  "{}, used {}{}\n",
                  printable(d.name), counted(d.tokens, "token"), described(d.cache), format_bytes(d.bytes),
                  store.where(), d.model_name.empty() ? "unnamed" : brief(d.model_name), brief(d.model_arch),
                  d.model_hash, counted(d.n_layer, "layer"), d.id, documents::utc(d.added), documents::utc(d.used),
                  d.tags.empty() ? "" : "\n  tags " + joined(d.tags)));
}

/// Returns a callback that shows progress on a terminal; empty elsewhere.
std::function<void(double)> progress(const char* what) {
  if (isatty(STDERR_FILENO) == 0) return {};
  return [what](double share) {
    std::fprintf(stderr, "\r%s: %3.0f %%%s", what, 100 * share, share >= 1 ? "\r\033[K" : "");
    std::fflush(stderr);
  };
}

/// Reports all damages, then throws an error with their number.
void verify(const StoreArguments& a) {
  const auto store = open_store(a, MissingStore::is_an_error);
  const auto damages = store.verify(progress("verifying"));
  if (a.json) {
    auto all = nlohmann::ordered_json::array();
    for (const auto& damage : damages) all.push_back({{"name", damage.name}, {"what", damage.what}});
    write_json({{"store", store.where()}, {"damages", std::move(all)}});
  } else {
    for (const auto& damage : damages) show(printable(damage.what) + "\n");
    if (damages.empty())
      show(fmt::format("{} in {}: all checksums hold\n", counted(store.list().size(), "document"), store.where()));
  }
  if (!damages.empty())
    throw InputError(fmt::format("{} damaged in {}", counted(damages.size(), "thing is", "things are"), store.where()));
}

void gc(const StoreArguments& a) {
  const std::size_t most = size_of("--max-bytes", a.max_bytes);
  auto store = open_store(a, MissingStore::is_an_error);
  const auto gone = store.gc(most);
  if (a.json) {
    auto all = nlohmann::ordered_json::array();
    for (const auto& document : gone) all.push_back(documents::document_json(document));
    return write_json({{"store", store.where()}, {"removed", std::move(all)}});
  }
  for (const auto& d : gone)
    show(fmt::format("removed {}, {}, last used {}\n", printable(d.name), format_bytes(d.bytes),
                     documents::utc(d.used)));
}

void import(const StoreArguments& a) {
  check_exported(a.file, a.as);
  auto store = open_store(a, MissingStore::is_created);
  const auto added = store.import_from(a.file, a.as);
  if (a.json) return write_json(documents::document_json(added.info));
  show(fmt::format("{}: {}, {}\n", printable(added.info.name), counted(added.info.tokens, "token"),
                   format_bytes(added.info.bytes)));
}

CLI::App& add_command(CLI::App& docs, const std::string& name, const std::string& about,
                      const std::shared_ptr<StoreArguments>& a, void (*run)(const StoreArguments&)) {
  auto* const command = docs.add_subcommand(name, about);
  add_store_option(*command, *a);
  command->callback([a, run] { run(*a); });
  return *command;
}

}  // namespace

void add_docs_store(CLI::App& docs) {
  const auto a = std::make_shared<StoreArguments>();
  const auto json = [&](CLI::App& command) { command.add_flag("--json", a->json, "as JSON"); };

  auto& list_command = add_command(docs, "list", "list the documents", a, list_documents);
  list_command.add_option("--tag", a->tag, "only documents with this tag");
  json(list_command);

  auto& show_command = add_command(docs, "show", "describe a document", a, show_document);
  show_command.add_option("NAME", a->names, "the document")->required()->expected(1);
  json(show_command);

  auto& remove_command = add_command(docs, "rm", "remove documents", a, [](const StoreArguments& o) {
    open_store(o, MissingStore::is_an_error).remove(o.names);
  });
  remove_command.add_option("NAME", a->names, "documents to remove: all of them, or none if one does not exist")
      ->required();

  json(add_command(docs, "verify", "verify all checksums", a, verify));

  auto& export_command = add_command(docs, "export", "write a document to a file", a, [](const StoreArguments& o) {
    open_store(o, MissingStore::is_an_error).export_to(o.names.front(), o.file);
  });
  export_command.add_option("NAME", a->names, "the document")->required()->expected(1);
  export_command.add_option("-o,--output", a->file, "the file")->required();

  auto& import_command = add_command(docs, "import", "add a document that was exported", a, import);
  import_command.add_option("FILE", a->file, "file of docs export")->required();
  import_command.add_option("--name", a->as, "name of the document (default: its old one)");
  json(import_command);

  auto& gc_command = add_command(docs, "gc", "remove the least recently used documents", a, gc);
  gc_command.add_option("--max-bytes", a->max_bytes, "size that the remaining documents may have: 500MiB, 20GiB")
      ->required();
  json(gc_command);
}

}  // namespace winnow::cli
