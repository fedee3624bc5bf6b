// SPDX-License-Identifier: Apache-2.0
// `winnow docs add`: reads and stores documents.
#include <spdlog/fmt/fmt.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "base/counted.h"
#include "base/format.h"
#include "base/log.h"
#include "base/printable.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/docs/docs.h"
#include "cli/docs/json.h"
#include "cli/docs/options.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/wording.h"
#include "documents/document_json.h"
#include "winnow/error.h"

namespace winnow::cli {

namespace {

struct AddArguments : StoreOptions {
  CommonArguments common;
  CommonOptions options;
  std::vector<std::string> files;
  std::string name;
  std::vector<std::string> tags;
  bool json = false;
};

/// Names of the documents: --name, or the file's name.
std::vector<std::string> names_of(const AddArguments& a) {
  if (!a.name.empty() && a.files.size() > 1)
    throw UsageError(fmt::format("--name {} cannot name {} files: give one file", a.name, a.files.size()));
  std::vector<std::string> out;
  std::set<std::string> seen;
  for (const auto& file : a.files) {
    if (file == "-" && a.name.empty()) throw UsageError("a document from stdin needs a name: give --name");
    out.push_back(a.name.empty() ? std::filesystem::path(file).filename().string() : a.name);
    if (!seen.insert(out.back()).second)
      throw UsageError(fmt::format("two files are called {}: add them one by one, each with a --name", out.back()));
  }
  return out;
}

std::string line(const AddedDocument& added) {
  const auto& d = added.info;
  const std::string times = added.was_read
                                ? fmt::format("read in {:.0f} ms, stored in {:.0f} ms", added.read_ms, added.store_ms)
                                : "was already stored";
  return fmt::format("{} {}: {}, {}, {}; {}\n", documents::name_of(added.outcome), printable(d.name),
                     counted(d.tokens, "token"), described(d.cache), format_bytes(d.bytes), times);
}

/// Adds all documents, and reports those that cannot be added.
void add_all(const AddArguments& a) {
  const auto names = names_of(a);
  const auto model = Model::load(path_of(a.options.model), a.options.loading);
  DocumentStore store = open_store(a, MissingStore::is_created);
  Session session(model, a.options.session);
  session.on_stop(interrupted);
  if (!a.options.quiet) show_progress(session);
  auto all = nlohmann::ordered_json::array();
  std::size_t failed = 0;
  for (std::size_t i = 0; i < names.size(); ++i) {
    try {
      const auto added = store.add(session, {names[i], a.tags, {read_text(a.files[i]), a.options.prompt.control, {}}},
                                   a.options.cache);
      if (a.json) {
        all.push_back(documents::added_json(added));
      } else if (!a.options.quiet) {
        show(line(added));
      }
    } catch (const InputError& error) {
      if (names.size() == 1) throw;
      log().error("{}: {}", a.files[i], error.what());
      ++failed;
    }
  }
  if (a.json) write_json({{"store", store.where()}, {"documents", std::move(all)}});
  if (failed > 0)
    throw InputError(fmt::format("{} of {} could not be added", failed, counted(names.size(), "document")));
}

}  // namespace

void add_docs_add(CLI::App& docs) {
  auto* const command = docs.add_subcommand("add", "read documents and store their caches");
  const auto a = std::make_shared<AddArguments>();
  command->add_option("FILE", a->files, "files of text, - for stdin")->required();
  command->add_option("--name", a->name, "name of a single document (default: its file's name)");
  command->add_option("--tag", a->tags, "tag of these documents; may be given several times")->allow_extra_args(false);
  add_store_option(*command, *a);
  add_reading_options(*command, a->common, a->options);
  command->add_flag("--json", a->json, "one JSON object on stdout");
  command->footer(
      "Examples:\n  winnow docs add -m model.gguf manual.txt faq.txt --tag support\n"
      "  winnow docs add -m model.gguf long.txt --name guide --kv \"ada(snapkv)\" --budget 20% --kv-type q8_0\n"
      "  winnow docs add -m model.gguf manual.txt --store redis://cache.example:6379");
  command->callback([a] {
    a->common.protocol = Protocol::agnostic;
    check_common(a->common, a->options);
    add_all(*a);
  });
}

}  // namespace winnow::cli
